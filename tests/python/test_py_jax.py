# SPDX-License-Identifier: Apache-2.0
"""jax's own cases: narrowing, tracers, keys, deleted arrays, 64-bit types."""

import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")
np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

import isthmus
from frameworks import address, aligned, reasons

SMALL = {"int64": "int32", "uint64": "uint32", "float64": "float32",
         "complex128": "complex64"}


@pytest.mark.parametrize("dtype", SMALL)
def test_jax__never_narrows_unless_told(dtype):
    """jax-ml/jax#11895"""
    x = np.array([1, 2**20, 3], dtype)
    for source in (x, torch.from_numpy(x)):
        for copy in (None, True, False):
            with pytest.raises(isthmus.Error, match="narrow=True") as e:
                isthmus.to(source, "jax", copy=copy)
            assert e.value.code == 117 and isinstance(e.value, BufferError)
        assert reasons(isthmus.plan(source, "jax")) == ["narrowing"]
        result, receipt = isthmus.to(source, "jax", narrow=True, receipt=True)
        assert str(result.dtype) == SMALL[dtype]
        assert result.tolist() == x.tolist()
        assert reasons(receipt) == ["narrowed"] and receipt.hops == 1
        assert receipt.bytes_moved == x.nbytes // 2
        plan = isthmus.plan(source, "jax", narrow=True)
        assert plan.json() == receipt.json()
        with pytest.raises(BufferError) as e:
            isthmus.to(source, "jax", narrow=True, copy=False)
        assert e.value.code == 104


def test_jax__narrowing_does_what_numpy_does():
    x = np.array([2**40 + 5, -2**35, 3])
    result = isthmus.to(x, "jax", narrow=True)
    assert result.tolist() == x.astype("int32").tolist()


@pytest.mark.parametrize("dtype", SMALL)
def test_jax__keeps_wide_types_where_they_are_on(dtype):
    x = aligned(np.array([2**40 + 5, 7]), dtype)
    with jax.enable_x64(True):
        result, receipt = isthmus.to(x, "jax", receipt=True)
        assert str(result.dtype) == dtype and receipt.route == "alias"
        assert np.asarray(result).tolist() == x.tolist()
        assert address(result) == address(x)
        assert isthmus.to(result, "torch").tolist() == x.tolist()


def test_jax__tracers_are_refused_with_the_reason():
    def look(x):
        for call in (isthmus.from_dlpack, lambda t: isthmus.to(t, "numpy")):
            with pytest.raises(isthmus.Error, match="tracer") as e:
                call(x)
            assert e.value.code == 116 and isinstance(e.value, BufferError)
        assert isthmus.plan(x, "numpy").route == "refuse"
        return x.sum()

    x = jax.numpy.ones(3)
    jax.jit(look)(x)
    jax.grad(look)(x)
    jax.vmap(look)(jax.numpy.ones((2, 3)))


def test_jax__keys_are_refused_with_the_way_out():
    key = jax.random.key(0)
    with pytest.raises(isthmus.Error, match="key_data") as e:
        isthmus.to(key, "numpy")
    assert e.value.code == 205 and e.value.__cause__ is not None
    assert isthmus.to(jax.random.key_data(key), "numpy").dtype == "uint32"


def test_jax__deleted_and_donated_arrays_are_refused():
    x = jax.numpy.ones(4)
    x.delete()
    y = jax.numpy.ones(1024)
    jax.jit(lambda a: a + 1, donate_argnums=0)(y)
    gone = [x] + ([y] if y.is_deleted() else [])
    for array in gone:
        with pytest.raises(isthmus.Error, match="deleted") as e:
            isthmus.from_dlpack(array)
        assert e.value.code == 312 and isinstance(e.value, BufferError)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2"])
def test_jax__sub_byte_integers_go_through_numpy_and_say_so(name):
    """openxla/xla#16795: jax has no capsule for them."""
    x = jax.device_put(np.array([[0, 1, 1], [1, 0, 1]]).astype(name))
    tensor = isthmus.from_dlpack(x)
    assert str(tensor.dtype) == name and tensor.padded
    result, receipt = isthmus.to(x, "numpy", receipt=True)
    assert reasons(receipt) == ["uncarried"] and receipt.route == "copy"
    assert (result == np.asarray(x)).all() and receipt.bytes_moved == 6
    assert isthmus.plan(x, "numpy").bytes_moved == 6
    back, receipt = isthmus.to(result, "jax", receipt=True)
    assert back.dtype == x.dtype and (back == x).all()
    assert "uncarried" in reasons(receipt) and receipt.hops == 1
    for source, target in ((x, "numpy"), (result, "jax")):
        with pytest.raises(isthmus.Error, match="copy=None") as e:
            isthmus.to(source, target, copy=False)
        assert e.value.code == 104
        assert isthmus.plan(source, target, copy=False).route == "refuse"


def test_jax__a_live_view_outlives_the_array():
    x = jax.numpy.arange(1024.0)
    view = isthmus.to(x, "torch")
    where = address(x)
    del x
    assert view.data_ptr() == where and view[1023] == 1023


def test_jax__a_viewed_array_is_not_donated():
    x = jax.numpy.arange(1024.0)
    view = isthmus.to(x, "numpy")
    y = jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert view.tolist() == list(range(1024)) and float(y[0]) == 1


def test_jax__arrays_are_read_only_elsewhere():
    """jax-ml/jax#40789"""
    x = jax.numpy.arange(4.0)
    assert isthmus.from_dlpack(x).read_only
    result, receipt = isthmus.to(x, "numpy", receipt=True)
    assert not result.flags.writeable and receipt.read_only
    assert address(result) == address(x)


def test_jax__layouts_survive_jit():
    """jax-ml/jax#17784"""
    x = aligned(np.arange(12).reshape(3, 4), "float32").T
    result, receipt = isthmus.to(x, "jax", receipt=True)
    assert receipt.route == "alias" and address(result) == address(x)
    assert np.array_equal(np.asarray(result), x)
    assert np.array_equal(np.asarray(jax.jit(lambda a: a * 2)(result)), x * 2)
    assert np.array_equal(np.asarray(result[1]), x[1])


@pytest.mark.parametrize("cut", [
    lambda a: a[:, :2], lambda a: a[::-1], lambda a: a[::2],
    lambda a: np.broadcast_to(a[0], (5, 4))])
def test_jax__takes_any_strides_by_one_copy(cut):
    """jax-ml/jax#8082"""
    x = cut(aligned(np.arange(12).reshape(3, 4), "float32"))
    result, receipt = isthmus.to(x, "jax", receipt=True)
    assert np.array_equal(np.asarray(result), x)
    assert (receipt.route, receipt.bytes_moved) == ("copy", x.nbytes)
    assert address(result) % 64 == 0


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0, 2)])
def test_jax__takes_empty_tensors(shape):
    """microsoft/onnxruntime#27450"""
    for x in (np.zeros(shape, "float32"), torch.zeros(shape),
              np.zeros(shape, "float32").T[::-1]):
        result = isthmus.to(x, "jax")
        assert result.shape == tuple(x.shape)
    assert isthmus.to(jax.numpy.zeros(shape), "torch").shape == shape


def test_jax__tensors_of_ours_go_into_jax_by_its_public_import():
    x = aligned(np.arange(4), "float32")
    result = jax.dlpack.from_dlpack(isthmus.from_dlpack(x))
    assert address(result) == address(x)


def test_jax__a_missing_private_entry_falls_back(monkeypatch):
    from isthmus import _jax
    monkeypatch.setattr(_jax, "_entry", None)
    x = aligned(np.arange(4), "float32")
    result, receipt = isthmus.to(x, "jax", receipt=True)
    assert result.tolist() == [0, 1, 2, 3] and receipt.route == "alias"
    assert address(result) == address(x)


def test_jax__arrays_over_several_devices_come_later():
    code = """
import jax, numpy as np, isthmus
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), "a")
x = jax.device_put(np.arange(16, dtype="float32"), NamedSharding(mesh, P("a")))
for call in (isthmus.from_dlpack, lambda t: isthmus.to(t, "numpy")):
    try:
        call(x)
    except isthmus.Error as e:
        assert e.code == 102 and isinstance(e, BufferError), e
        assert "not in this version" in str(e)
    else:
        raise SystemExit("not refused")
part = x.addressable_data(2)
assert isthmus.to(part, "numpy").tolist() == [8, 9, 10, 11]
device = jax.devices()[3]
assert isthmus.to(np.ones(3, "float32"), device).devices() == {device}
print("fine")
"""
    import os
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**os.environ,
             "XLA_FLAGS": "--xla_force_host_platform_device_count=4"})
    assert done.stdout == "fine\n", done.stderr
