# SPDX-License-Identifier: Apache-2.0
"""The short way in C and the adapters in Python do the same: results, aliases,
flags and errors, over arrays and tensors plain and odd."""

import gc
import os
import subprocess
import sys
import weakref

import pytest

np = pytest.importorskip("numpy")

import isthmus
from frameworks import address, aligned
from isthmus import _core

try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def odd_stride():
    """Items of four bytes, nine apart."""
    raw = np.zeros(45, "uint8")
    return np.ndarray((5,), "float32", raw, strides=(9,))


def frozen(array):
    array.flags.writeable = False
    return array


def warning():
    return np.broadcast_arrays(np.zeros(3), np.zeros((2, 3)))[0]


NUMPY = {
    "plain": lambda: aligned(np.arange(6).reshape(2, 3), "float32"),
    "off by four": lambda: aligned(np.arange(6), "float32", offset=4),
    "fortran": lambda: np.asfortranarray(aligned(np.ones((3, 4)), "float32")),
    "transposed": lambda: aligned(np.arange(24.).reshape(2, 3, 4)).T,
    "reversed": lambda: aligned(np.arange(6.))[::-1],
    "gaps": lambda: aligned(np.arange(24).reshape(4, 6), "int16")[::2, 1::3],
    "broadcast": lambda: np.broadcast_to(np.float32(3), (2, 3)),
    "overlap": lambda: np.lib.stride_tricks.as_strided(
        np.arange(9.), (3, 4), (16, 8)),
    "warns of a write": warning,
    "read-only": lambda: frozen(aligned(np.arange(4.))),
    "no dimension": lambda: np.array(3.5, "float32"),
    "empty": lambda: np.zeros((2, 0, 3), "float32"),
    "size one": lambda: aligned(np.zeros((8, 8), "float32"))[2:3, ::3],
    "many dimensions": lambda: np.zeros((1,) * 40),
    "odd stride": odd_stride,
    "items off": lambda: np.frombuffer(bytes(21), "uint8")[1:].view("float32"),
    "big-endian": lambda: np.arange(3, dtype=">f4"),
    "longlong": lambda: np.zeros(2, "q"),
    "record": lambda: np.zeros(2, [("a", "i4")]),
    "text": lambda: np.array(["a"]),
    "objects": lambda: np.array([object()]),
    "longdouble": lambda: np.zeros(2, np.longdouble),
    "datetime": lambda: np.zeros(2, "M8[s]"),
    "masked": lambda: np.ma.masked_array([1., 2.], [True, False]),
    "matrix": lambda: np.zeros((2, 2)).view(np.matrix),
    "with metadata": lambda: np.zeros(
        2, np.dtype("f4", metadata={"unit": "m"})),
    "number": lambda: np.float32(3),
    **{code: lambda code=code: np.zeros(3, code) for code in "?bhilBHILefdFD"},
}
if ml_dtypes is not None:
    NUMPY["bfloat16"] = lambda: np.zeros(3, ml_dtypes.bfloat16)
    NUMPY["int4"] = lambda: np.arange(4).astype(ml_dtypes.int4)


def resized(tensor):
    tensor.untyped_storage().resize_(4)
    return tensor


def sub_tensor():
    class Mine(torch.Tensor):
        pass
    return torch.ones(3).as_subclass(Mine)


TORCH = {} if torch is None else {
    "plain": lambda: torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "transposed": lambda: torch.arange(24.).reshape(2, 3, 4).permute(2, 0, 1),
    "part": lambda: torch.arange(24.).reshape(4, 6)[1:3, ::2],
    "expanded": lambda: torch.ones(3).expand(2, 3),
    "empty": lambda: torch.zeros(2, 0, 3),
    "no dimension": lambda: torch.tensor(2.5),
    "grad": lambda: torch.zeros(3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "frozen parameter": lambda: torch.nn.Parameter(
        torch.ones(3), requires_grad=False),
    "result of grad": lambda: torch.zeros(3, requires_grad=True) * 2,
    "negative": lambda: torch._neg_view(torch.ones(3)),
    "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
    "imaginary": lambda: torch.tensor([1 + 2j]).conj().imag,
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.zeros(3, device="meta"),
    "zero": lambda: torch._efficientzerotensor(3),
    "nested": lambda: torch.nested.nested_tensor(
        [torch.zeros(2), torch.zeros(3)]),
    "resized": lambda: resized(torch.zeros(100)),
    "resized, with an offset": lambda: resized(torch.zeros(100)[1:2]),
    "subclass": sub_tensor,
    "int4": lambda: torch.empty(4, dtype=torch.int4),
    "uint2": lambda: torch.empty(4, dtype=torch.uint2),
    "pairs": lambda: torch.zeros(4, dtype=torch.uint8).view(
        torch.float4_e2m1fn_x2),
    **{str(d).rpartition(".")[2]: lambda d=d: torch.zeros(3, dtype=d)
       for d in (torch.bool, torch.uint8, torch.int8, torch.int64,
                 torch.uint16, torch.float16, torch.bfloat16, torch.float64,
                 torch.float8_e4m3fn, torch.complex64)},
}
SOURCES = [*(("numpy", name) for name in NUMPY),
           *(("torch", name) for name in TORCH)]
TARGETS = ["numpy", "torch", "host", "template", "pjrt"]


def make(source):
    kind, name = source
    try:
        return (NUMPY if kind == "numpy" else TORCH)[name]()
    except (AttributeError, RuntimeError, TypeError) as error:
        pytest.skip(f"not here: {error}")


@pytest.fixture(scope="module")
def backends():
    opened = {"template": isthmus.open("template"),
              "host": isthmus.open("host")}
    if "ISTHMUS_P1" in os.environ:
        opened["pjrt"] = isthmus.open("pjrt:" + os.environ["ISTHMUS_P1"])
    yield opened
    for backend in opened.values():
        backend.close()


def where(x):
    """The memory, so that an alias of it is told from a copy."""
    try:
        return address(x)
    except Exception:
        return None


def looks(result, x):
    """All that can be seen of a result but where a copy happens to lie."""
    facts = [type(result), str(result.dtype), tuple(result.shape)]
    facts.append(where(x) is not None and where(result) == where(x))
    if isinstance(result, isthmus.Tensor):
        facts += [result.strides, result.read_only, result.copied,
                  result.padded, result.layout, result.device]
    elif isinstance(result, np.ndarray):
        facts += [result.strides, result.flags.writeable]
    else:
        facts += [result.stride(), result.requires_grad, result.is_neg(),
                  result.is_conj()]
    host = isthmus.from_dlpack(result, device=(1, 0)) if isinstance(
        result, isthmus.Tensor) else isthmus.from_dlpack(result)
    if host.nbytes:
        facts.append(bytes(memoryview(isthmus.to(host, "numpy", copy=True)
                                      .reshape(-1).view("uint8"))))
    return facts


def outcome(x, call):
    """What a call gives, or how it fails, with the cause."""
    try:
        return looks(call(x), x)
    except Exception as error:
        return [type(error), str(error), getattr(error, "code", None),
                type(error.__cause__)]


@pytest.fixture(autouse=True)
def fast_again():
    was = _core.slow(False)
    yield
    _core.slow(was)


def both(source, call):
    """The outcome of the short way and of the adapters, of one source: where
    NumPy puts an array is luck."""
    results = []
    x = make(source)
    for slow in (False, True):
        _core.slow(slow)
        results.append(outcome(x, call))
        _core.slow(False)
    return results


def here(names, backends):
    """The targets of this machine: name -> what to() takes."""
    return {name: backends[name].device if name in backends else name
            for name in names
            if name in backends or (name == "torch" and torch is not None)
            or name == "numpy"}


@pytest.mark.parametrize("source", SOURCES, ids=" ".join)
def test_to__is_the_same_by_both_ways(source, backends):
    for name, there in here(TARGETS, backends).items():
        fast, slow = both(source, lambda x: isthmus.to(x, there))
        assert fast == slow, name


@pytest.mark.parametrize("source", SOURCES, ids=" ".join)
def test_from_dlpack__is_the_same_by_both_ways(source, backends):
    for name, there in here(TARGETS[2:], backends).items():
        for copy in (None, True, False):
            fast, slow = both(source, lambda x: isthmus.from_dlpack(
                x, device=there, copy=copy))
            assert fast == slow, (name, copy)


@pytest.mark.parametrize("source", SOURCES, ids=" ".join)
def test_to__is_the_same_of_tensors_by_both_ways(source, backends):
    for place, there in here(TARGETS[2:], backends).items():
        for name in here(TARGETS[:2], backends):
            fast, slow = both(source, lambda x: isthmus.to(
                isthmus.from_dlpack(x, device=there), name))
            assert fast == slow, (place, name)


def test_the_short_way__is_taken_here():
    """These tests compare two ways only where there are two."""
    isthmus.from_dlpack(np.zeros(2))
    from isthmus import _numpy
    assert _numpy.FAST
    if torch is not None:
        isthmus.from_dlpack(torch.zeros(2))
        from isthmus import _torch
        assert _torch.FAST


def test_know_numpy__refuses_arrays_that_are_not_as_declared():
    array = np.arange(6.).reshape(2, 3)
    true = (array, address(array), array.shape, array.strides,
            array.flags.num)
    for place, lie in enumerate([None, 64, (3, 2), (8, 24), 0]):
        if place == 0:
            continue
        sample = (*true[:place], lie, *true[place + 1:])
        assert not _core.know_numpy(np.ndarray, (), (sample,))
    assert not _core.know_numpy(np.ndarray, (), ())
    from isthmus import _numpy  # the refusals changed nothing
    assert isthmus.from_dlpack(array).shape == (2, 3) and _numpy.FAST


@pytest.mark.skipif(torch is None, reason="no torch")
def test_know_torch__refuses_types_without_the_exchange_api():
    assert not _core.know_torch(dict, dict, dict, ())
    assert isthmus.from_dlpack(torch.ones(2)).shape == (2,)  # as before


def test_short_way__keeps_the_array_as_long_as_the_tensor():
    array = np.arange(4.)
    tensor = isthmus.from_dlpack(array)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is not None
    assert isthmus.to(tensor, "numpy").tolist() == [0, 1, 2, 3]
    tensor.close()
    assert gone() is None


@pytest.mark.skipif(torch is None, reason="no torch")
def test_short_way__memory_of_a_tensor_outlives_its_data():
    x = torch.arange(4.)
    tensor = isthmus.from_dlpack(x)
    x.data = torch.zeros(4)
    x.set_(torch.ones(4))
    del x
    gc.collect()
    assert isthmus.to(tensor, "numpy").tolist() == [0, 1, 2, 3]


def test_short_way__every_array_is_let_go_of_once(backends):
    if "pjrt" not in backends:
        pytest.skip("no plugin")
    device = backends["pjrt"].device
    array = aligned(np.arange(6), "float32")
    before = sys.getrefcount(array)
    for _ in range(20):
        isthmus.to(isthmus.from_dlpack(array, device=device), "numpy")
        isthmus.to(array, device)
        kept = [isthmus.from_dlpack(array, device=device) for _ in range(20)]
        del kept
    assert sys.getrefcount(array) == before


def test_short_way__interrupt_in_a_producer_is_raised():
    if torch is None:
        pytest.skip("no torch")
    from torch.overrides import TorchFunctionMode

    class Interrupts(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            raise KeyboardInterrupt

    x = torch.zeros(2)
    isthmus.from_dlpack(x)
    with pytest.raises(KeyboardInterrupt), Interrupts():
        isthmus.from_dlpack(x)


DROPS = """
import gc, os, sys, threading, weakref
import numpy as np
import isthmus
from isthmus import _core
backend = isthmus.open("pjrt:" + sys.argv[1])
device = backend.device
raw = isthmus.empty((1 << 10,), "float32", like="numpy")

class Nested:
    # Its end lets go of tensors in turn, which is a call inside a call.
    def __init__(self, depth):
        array = raw[:16].view()
        self.kept = [isthmus.from_dlpack(array, device=device)]
        if depth:
            self.kept.append(Nested(depth - 1))
    def __del__(self):
        self.kept.clear()

failed = []
def work(seed):
    try:
        for n in range(150):
            owner = Nested(12)
            view = np.frombuffer(raw, "uint8")
            many = [isthmus.from_dlpack(raw[:16], device=device)
                    for _ in range(4)]
            out = [isthmus.to(t, "numpy") for t in many]
            del many, owner
            assert all(a.shape == (16,) for a in out)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert not failed, failed
gc.collect()
before = sys.getrefcount(raw)
assert before < 8, before
"""


def test_drops__of_many_threads_are_all_made():
    if "ISTHMUS_P1" not in os.environ:
        pytest.skip("no plugin")
    done = subprocess.run(
        [sys.executable, "-c", DROPS, os.environ["ISTHMUS_P1"]],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_to__types_of_the_arguments_are_checked_as_in_python():
    with pytest.raises(TypeError):
        isthmus.to()
    with pytest.raises(TypeError):
        isthmus.to(np.zeros(2))
    with pytest.raises(TypeError):
        isthmus.to(np.zeros(2), "numpy", None)
    with pytest.raises(TypeError):
        isthmus.to(np.zeros(2), "numpy", nothing=1)
    assert isthmus.to(x=np.zeros(2), target="numpy").shape == (2,)
