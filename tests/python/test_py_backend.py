# SPDX-License-Identifier: Apache-2.0
"""Backends from Python: the host, the template whose addresses the host
cannot read, and the PJRT plugins of this machine; programs on them."""

import gc
import os
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")

import isthmus
from frameworks import address, aligned, reasons

PLUGINS = ("ISTHMUS_P1", "ISTHMUS_P2", "ISTHMUS_P3")
ADD = """
module @add { func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = stablehlo.add %a, %b : tensor<2x3xf32>
  %1 = stablehlo.multiply %a, %b : tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32> } }
"""


@pytest.fixture(params=PLUGINS)
def pjrt(request):
    if request.param not in os.environ:
        pytest.skip(f"{request.param} names no plugin")
    with isthmus.open("pjrt:" + os.environ[request.param]) as backend:
        yield backend


@pytest.fixture
def hidden():
    """A device whose addresses this process cannot read."""
    with isthmus.open("template", options={"addressable": False}) as backend:
        yield backend


@pytest.fixture
def lying():
    """A device whose addresses no DLPack code names."""
    if "ISTHMUS_LYING_PJRT" not in os.environ:
        pytest.skip("the lying plugin was not built")
    path = os.environ["ISTHMUS_LYING_PJRT"]
    with isthmus.open(f"pjrt:{path}") as backend:
        yield backend


def matrix():
    return aligned(np.arange(6).reshape(2, 3), "float32")


def test_open__gives_the_host():
    with isthmus.open("host") as host:
        assert host.name == host.platform == "host"
        assert len(host.devices) == 1 and host.device == (1, 0)
        assert not host.runs_programs
        with pytest.raises(isthmus.Error) as e:
            host.compile(ADD)
        assert e.value.code == 314


@pytest.mark.parametrize("call, code", [
    (lambda: isthmus.open("nothing"), 301),
    (lambda: isthmus.open(""), 301),
    (lambda: isthmus.open("pjrt"), None),
    (lambda: isthmus.open("pjrt:no_such_plugin"), 302),
    (lambda: isthmus.open("pjrt:/nowhere/p.so"), 302),
    (lambda: isthmus.open("pjrt", path=__file__), None),
    (lambda: isthmus.open("x.npy#3"), 103),
    (lambda: isthmus.open("host", options={"a": 1}), 109),
    (lambda: isthmus.open("host", options=[1]), 109),
    (lambda: isthmus.open("template", options={"a": object()}), 109),
    (lambda: isthmus.open("template", options={"a": [1, "x"]}), 109),
    (lambda: isthmus.open("template", options={"a": 2**70}), 109),
    (lambda: isthmus.open("template", options={3: 1}), 109),
    (lambda: isthmus.open("template", options={"addressable\0": False}), 101),
    (lambda: isthmus.open("template", options={"name": "a\0b"}), 101),
    (lambda: isthmus.open("template", options={"\ud800": 1}), 101),
    (lambda: isthmus.open("template#99"), 307),
])
def test_open__refuses_what_is_no_backend(call, code):
    with pytest.raises(isthmus.Error) as e:
        call()
    assert code is None or e.value.code == code
    assert "\n" not in str(e.value) and "  " not in str(e.value)


def test_hidden_memory__is_reached_by_staging(hidden):
    x = matrix()
    tensor, receipt = isthmus.to(x, hidden, receipt=True)
    assert receipt.route in ("copy", "stage") and receipt.bytes_moved == 24
    assert tensor.address is None
    x[...] = 0
    back, receipt = isthmus.to(tensor, "numpy", receipt=True)
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert receipt.bytes_moved == 24 and receipt.route == "copy"
    assert np.asarray(tensor).tolist() == back.tolist()
    assert "5.0" in repr(tensor)
    for target in ("numpy", "torch", "jax"):
        pytest.importorskip(target)
        assert np.asarray(isthmus.to(tensor, target)).tolist() == (
            back.tolist())


def test_hidden_memory__cannot_be_aliased(hidden):
    tensor = isthmus.to(matrix(), hidden)
    for call in (lambda: isthmus.to(tensor, "numpy", copy=False),
                 lambda: isthmus.to(matrix(), hidden, copy=False),
                 lambda: isthmus.from_dlpack(matrix(), device=hidden,
                                             copy=False),
                 lambda: memoryview(tensor)):
        with pytest.raises(BufferError):
            call()
    assert isthmus.plan(tensor, "numpy", copy=False).route == "refuse"


def test_hidden_memory__is_exported_as_it_lies_or_through_the_host(hidden):
    tensor = isthmus.from_dlpack(matrix(), device=hidden)
    assert tensor.__dlpack_device__() == tensor.device
    assert tensor.device.type is isthmus.DeviceType.ext_dev
    with pytest.raises(BufferError):
        isthmus.from_dlpack(tensor.__dlpack__(max_version=(1, 0), copy=False))
    capsule = tensor.__dlpack__(max_version=(1, 0), dl_device=(1, 0))
    assert isthmus.to(capsule, "numpy").tolist() == matrix().tolist()
    assert np.from_dlpack(tensor, device="cpu").tolist() == matrix().tolist()
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)


def test_nameless_devices__are_exported_on_the_host(lying):
    tensor = isthmus.from_dlpack(matrix(), device=lying)
    assert tensor.__dlpack_device__() == tensor.device == (1, 0)
    assert tensor.address is None
    assert np.from_dlpack(tensor).tolist() == matrix().tolist()
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=False)


def test_program__long_messages_of_a_plugin_become_a_note(lying):
    with pytest.raises(isthmus.Error) as e:
        lying.compile("nonsense")
    assert "\n" not in str(e.value)
    assert "lying plugin: this is no program\npjrt:lying:   at line 1" in (
        e.value.__notes__[0])


def notes_of(call):
    with pytest.raises(isthmus.Error) as e:
        call()
    return getattr(e.value, "__notes__", [])


@pytest.mark.parametrize("variable", PLUGINS)
def test_open__leaves_no_notes_for_errors_of_others(variable):
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set")
    with isthmus.open(f"pjrt:{os.environ[variable]}"):
        assert notes_of(lambda: isthmus.open("pjrt:/nowhere/p.so")) == []
    with isthmus.open(f"pjrt:{os.environ[variable]}"):
        assert notes_of(lambda: isthmus.open("template#99")) == []


def test_hidden_memory__fills_out_and_files(hidden, tmp_path):
    tensor = isthmus.to(matrix(), hidden)
    out = np.zeros((2, 3), "float32")
    isthmus.to(tensor, "numpy", out=out)
    assert out.tolist() == matrix().tolist()
    isthmus.save(tmp_path / "x.npy", tensor)
    assert np.load(tmp_path / "x.npy").tolist() == matrix().tolist()


def test_backend__closed_ones_stay_themselves():
    one, two = isthmus.open("template"), isthmus.open("template")
    kept = {one: "one", two: "two"}
    one.close()
    two.close()
    assert one == one and one != two
    assert kept[one] == "one" and kept[two] == "two"


def test_backend__closes_in_any_order(hidden):
    tensor = isthmus.to(matrix(), hidden)
    device = hidden.device
    hidden.close()
    hidden.close()
    assert "closed" in repr(hidden)
    for use in (lambda: hidden.name, lambda: hidden.devices,
                lambda: hidden.compile(ADD), lambda: hidden.__enter__(),
                lambda: isthmus.to(matrix(), hidden)):
        with pytest.raises(isthmus.Error) as e:
            use()
        assert e.value.code == 106
    assert isthmus.to(tensor, "numpy").tolist() == matrix().tolist()
    assert device.backend.name == tensor.device.backend.name
    assert isthmus.to(matrix(), device).device == device


def test_device__names_its_backend_and_memories(hidden):
    device = hidden.devices[0]
    assert device.backend == hidden and hash(device.backend) == hash(hidden)
    assert device.index == 0 and device.name and device.kind
    assert device.memories and isinstance(device.memories[0][0], str)
    assert isthmus.to(matrix(), device).device == device
    with pytest.raises(TypeError):
        isthmus.Device()


def test_pjrt__aliases_aligned_memory_both_ways(pjrt):
    x = matrix()
    tensor, receipt = isthmus.to(x, pjrt, copy=False, receipt=True)
    assert receipt.route == "alias" and tensor.address == address(x)
    back, receipt = isthmus.to(tensor, "numpy", copy=False, receipt=True)
    assert receipt.route == "alias" and address(back) == address(x)
    del tensor, x
    gc.collect()
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_pjrt__copies_once_what_it_cannot_alias(pjrt):
    x = matrix()[::-1, ::2]
    tensor, receipt = isthmus.to(x, pjrt, receipt=True)
    assert (receipt.route, receipt.bytes_moved) == ("copy", 16)
    assert tensor.address % 64 == 0
    assert isthmus.to(tensor, "numpy").tolist() == x.tolist()


def test_pjrt__names_itself(pjrt):
    assert pjrt.platform == "cpu" and pjrt.version and pjrt.runs_programs
    assert pjrt.devices[0].backend == pjrt
    assert "cpu" in repr(pjrt) and "cpu" in repr(pjrt.device)


def test_pjrt__opens_the_device_of_a_place(pjrt):
    path = os.environ[PLUGINS[0]] if PLUGINS[0] in os.environ else None
    if path is None:
        pytest.skip("no plugin")
    with isthmus.open("pjrt", path=path,
                      options={"cpu_device_count": 2}) as two:
        assert len(two.devices) == 2
    with isthmus.open(f"pjrt:{path}#1") as backend:
        assert backend.device == backend.devices[1]
        assert isthmus.to(matrix(), backend).device.index == 1


def test_pjrt__opens_the_memory_of_a_place(pjrt):
    path = next(os.environ[p] for p in PLUGINS if p in os.environ)
    with isthmus.open(f"pjrt:{path}#1/pinned_host") as backend:
        for copy in (None, True):
            tensor, receipt = isthmus.to(
                matrix(), backend, copy=copy, receipt=True)
            assert receipt.target.endswith("#1/pinned_host")
            assert isthmus.to(tensor, "numpy").tolist() == matrix().tolist()
        plan = isthmus.plan(matrix(), backend)
        assert plan.target == receipt.target
        tensor = isthmus.from_dlpack(matrix(), device=backend)
        assert isthmus.plan(tensor, "numpy").source == receipt.target
    with pytest.raises(isthmus.Error) as e:
        isthmus.open(f"pjrt:{path}#0/nothing")
    assert e.value.code == 308


def test_program__runs_on_tensors_of_any_framework(pjrt):
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    program = pjrt.compile(ADD)
    assert [(str(d), s) for d, s in program.inputs] == [
        ("float32", (2, 3))] * 2
    assert [(str(d), s) for d, s in program.outputs] == [
        ("float32", (2, 3))] * 2
    x = matrix()
    y = isthmus.empty((2, 3), "float32", like="torch")
    y += 2
    outputs, receipts = program(x, y, receipt=True)
    assert [r.route for r in receipts] == ["alias", "alias"]
    assert isthmus.to(outputs[0], "numpy").tolist() == (x + 2).tolist()
    assert isthmus.to(outputs[1], "torch").tolist() == (x * 2).tolist()
    again = program(jax.numpy.asarray(x), outputs[0])
    assert isthmus.to(again[0], "jax").tolist() == (2 * x + 2).tolist()
    assert isinstance(again, list) and len(again) == 2


def test_program__takes_strided_inputs_by_one_copy(pjrt):
    program = pjrt.compile(ADD.encode(), name="add.mlir")
    x = aligned(np.arange(12).reshape(2, 6), "float32")[:, ::-2]
    outputs, receipts = program(x, x, receipt=True)
    assert [r.bytes_moved for r in receipts] == [24, 24]
    assert isthmus.to(outputs[0], "numpy").tolist() == (x + x).tolist()


def test_program__refuses_wrong_inputs(pjrt):
    program = pjrt.compile(ADD)
    x = matrix()
    for inputs, code in (((x,), 113), ((x, x, x), 113),
                         ((x, x.astype("float64")), 108),
                         ((x, x[:1]), 107), ((x, object()), 116)):
        with pytest.raises(isthmus.Error) as e:
            program(*inputs)
        assert e.value.code == code
    with pytest.raises(TypeError):
        program(x, x, wish=1)


def test_program__that_does_not_parse_is_one_line(pjrt):
    for code in ("nonsense", "", "module {", b"\0\1\2"):
        with pytest.raises(isthmus.Error) as e:
            pjrt.compile(code, name="bad.mlir")
        assert e.value.code in (213, 101) and "\n" not in str(e.value)
    with pytest.raises(isthmus.Error) as e:
        pjrt.compile(17)
    assert e.value.code == 101


def test_program__outlives_its_backend_object(pjrt):
    program = pjrt.compile(ADD)
    pjrt.close()
    outputs = program(matrix(), matrix())
    del program
    gc.collect()
    assert isthmus.to(outputs[0], "numpy").tolist() == (
        2 * matrix()).tolist()


def test_program__is_a_context_that_closes(pjrt):
    with pjrt.compile(ADD) as program:
        outputs = program(matrix(), matrix())
    program.close()
    assert "closed" in repr(program)
    for use in (lambda: program(matrix(), matrix()), lambda: program.inputs,
                lambda: program.outputs, lambda: program.__enter__()):
        with pytest.raises(isthmus.Error) as e:
            use()
        assert e.value.code == 106
    assert isthmus.to(outputs[0], "numpy").sum() == 30


def test_program__wants_plain_tensors(pjrt):
    torch = pytest.importorskip("torch")
    program = pjrt.compile(ADD)
    with pytest.raises(isthmus.Error) as e:
        program(torch.ones(2, 3, requires_grad=True), matrix())
    assert e.value.code == 115
    assert reasons(isthmus.plan(matrix(), pjrt))[-1] == "viewed"


THREADS = """
import os, sys, threading
import numpy as np
import isthmus
backend = isthmus.open("pjrt:" + sys.argv[1])
program = backend.compile(%r)
x = isthmus.empty((2, 3), "float32")
x[...] = 2
shared = isthmus.to(x, backend)
start = threading.Barrier(8)
failures = []

def work():
    try:
        start.wait()
        for i in range(100):
            assert isthmus.to(shared, "numpy").sum() == 12
            assert np.asarray(shared).sum() == 12
            total, product = program(shared, x)
            assert np.array(total).sum() == np.array(product).sum() == 24
    except BaseException as error:
        failures.append(error)

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert failures == [], failures
print("fine")
""" % ADD


@pytest.mark.parametrize("plugin", PLUGINS)
def test_pjrt__eight_threads_share_one_tensor_and_one_program(plugin):
    if plugin not in os.environ:
        pytest.skip(f"{plugin} names no plugin")
    done = subprocess.run(
        [sys.executable, "-c", THREADS, os.environ[plugin]],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "fine\n"


@pytest.mark.parametrize("plugin", PLUGINS)
def test_pjrt__views_held_at_exit_are_clean(plugin):
    if plugin not in os.environ:
        pytest.skip(f"{plugin} names no plugin")
    code = """
import builtins, sys
import numpy as np
import isthmus
backend = isthmus.open("pjrt:" + sys.argv[1])
x = isthmus.empty(64, "float32")
builtins.kept = [isthmus.to(isthmus.to(x, backend), "numpy"), backend,
                 isthmus.from_dlpack(bytearray(64), device=backend),
                 isthmus.to(x, backend).__dlpack__(max_version=(1, 0))]
np.kept = np.asarray(isthmus.to(x, backend))
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code, os.environ[plugin]],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "fine\n"
