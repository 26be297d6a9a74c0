# SPDX-License-Identifier: Apache-2.0
"""What was found wrong in another bridge to PJRT plugins (pypjrt 0.1.1), one
test each that it is not so here."""

import gc
import os

import pytest

np = pytest.importorskip("numpy")

import isthmus
from capsule_maker import Producer, capsule_name
from frameworks import address, aligned

PLUGINS = ("ISTHMUS_P1", "ISTHMUS_P2", "ISTHMUS_P3")
CUDA = 2
TRANSPOSE = """
func.func public @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %y = stablehlo.transpose %x, dims = [1, 0]
      : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
"""


@pytest.fixture(params=PLUGINS)
def backend(request):
    if request.param not in os.environ:
        pytest.skip(f"{request.param} names no plugin")
    with isthmus.open("pjrt:" + os.environ[request.param]) as opened:
        yield opened


def test_closing__leaves_what_was_exported_as_it_was(backend):
    with backend.compile(TRANSPOSE) as program:
        [result] = program(aligned(np.arange(6).reshape(2, 3), "float32"))
    exported = np.from_dlpack(result)
    result.close()
    backend.close()
    gc.collect()
    assert exported.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("legacy", [False, True])
def test_import__calls_the_deleter_of_a_capsule_once(backend, legacy):
    producer = Producer(legacy=legacy)
    tensor = isthmus.from_dlpack(producer.capsule(), device=backend)
    assert producer.freed == 0 and tensor.address == producer.address
    tensor.close()
    gc.collect()
    assert producer.freed == 1


@pytest.mark.parametrize("legacy", [False, True])
def test_import__refuses_memory_of_another_device(backend, legacy):
    producer = Producer(device=(CUDA, 0), legacy=legacy)
    capsule = producer.capsule()
    with pytest.raises(BufferError):
        isthmus.from_dlpack(capsule, device=backend)
    # It stays with the capsule, which is as it was.
    assert producer.freed == 0
    assert capsule_name(capsule) == (
        "dltensor" if legacy else "dltensor_versioned")


def test_export__says_the_strides_of_a_transposed_result(backend):
    x = aligned(np.arange(6).reshape(2, 3), "float32")
    [result] = backend.compile(TRANSPOSE)(x)
    assert (np.from_dlpack(result) == x.T).all()
    # Column-major memory, which a view may have.
    turned = isthmus.from_dlpack(
        np.lib.stride_tricks.as_strided(x, (3, 2), (4, 12)), device=backend)
    assert turned.address == address(x) and turned.strides == (1, 3)
    back = np.from_dlpack(turned)
    assert (back == x.T).all() and address(back) == address(x)


def test_copy__is_private_both_ways(backend):
    x = aligned(np.arange(4), "float32")
    there = isthmus.from_dlpack(x, device=backend, copy=True)
    assert there.copied and there.address != address(x)
    x[:] = 7
    assert np.from_dlpack(there).tolist() == [0, 1, 2, 3]
    out = np.from_dlpack(there, copy=True)
    assert address(out) != there.address
    out[:] = 9
    assert np.from_dlpack(there).tolist() == [0, 1, 2, 3]
