# SPDX-License-Identifier: Apache-2.0
"""Lifetime: threads, garbage cycles, the end of the interpreter."""

import ctypes
import gc
import subprocess
import sys
import threading
import weakref

import pytest

import isthmus
from capsule_maker import Producer, Versioned, read_versioned


class Memory(bytearray):
    """A buffer that can be referred to weakly."""


def run(code):
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("fine\n"), done.stderr
    assert "Fatal" not in done.stderr and "Traceback" not in done.stderr
    return done


def test_lifetime__a_tensor_keeps_its_object_and_lets_it_go():
    memory = Memory(8)
    gone = weakref.ref(memory)
    tensor = isthmus.from_dlpack(memory)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    del memory, tensor
    gc.collect()
    assert gone() is not None
    del capsule
    assert gone() is None


def test_lifetime__garbage_cycles_with_tensors_are_freed():
    producer = Producer()
    cycle = [isthmus.from_dlpack(producer)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert producer.freed == 1


def test_lifetime__a_deleter_may_be_called_without_the_gil():
    """dmlc/dlpack#103"""
    memory = Memory(8)
    gone = weakref.ref(memory)
    capsule = isthmus.from_dlpack(memory).__dlpack__(max_version=(1, 0))
    name = ctypes.pythonapi.PyCapsule_SetName
    name.argtypes = [ctypes.py_object, ctypes.c_char_p]
    struct = read_versioned(capsule)
    address = ctypes.addressof(struct)
    used = b"used_dltensor_versioned"
    name(capsule, used)
    del memory, capsule
    # A plain CDLL function pointer lets go of the GIL while it is called.
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(
        ctypes.cast(struct.deleter, ctypes.c_void_p).value)
    thread = threading.Thread(target=call, args=(address,))
    thread.start()
    thread.join()
    assert gone() is None
    assert ctypes.sizeof(Versioned) == 80 and used


def test_lifetime__eight_threads_share_and_drop_tensors():
    producers = [Producer() for _ in range(4)]
    tensors = [isthmus.from_dlpack(p) for p in producers]
    failures = []
    start = threading.Barrier(8)

    def work(seed):
        try:
            start.wait()
            for i in range(300):
                tensor = tensors[(seed + i) % 4]
                capsule = tensor.__dlpack__(max_version=(1, 0),
                                            copy=bool(i % 3) and None)
                other = isthmus.from_dlpack(capsule)
                view = memoryview(other)
                assert view.tolist() == [1, 2, 3, 4]
                private = isthmus.from_dlpack(other, copy=True)
                assert memoryview(private).tolist() == [1, 2, 3, 4]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [p.freed for p in producers] == [0] * 4
    del tensors
    assert [p.freed for p in producers] == [1] * 4


def test_lifetime__threads_race_for_one_capsule_and_one_wins():
    for _ in range(50):
        producer = Producer(legacy=bool(_ % 2))
        capsule = producer.capsule()
        start = threading.Barrier(4)
        got = []

        def work():
            start.wait()
            try:
                got.append(isthmus.from_dlpack(capsule, copy=True))
            except isthmus.Error as error:
                assert error.code == 110

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1 and producer.freed == 1


def test_lifetime__adapters_live_while_an_import_uses_them():
    """Types made in a loop push the adapter of a running import out of the
    memory of adapters."""
    run("""
import sys, threading
import numpy as np, isthmus
sys.setswitchinterval(1e-6)
device = isthmus.open("template").device
raw = np.zeros(4 * 1000 + 1, "uint8")
odd = raw[1:].view("float32")
refused = made = 0
stop = threading.Event()
def crowd(n):
    global made
    while not stop.is_set():
        for _ in range(300):
            made += 1
            try:
                isthmus.from_dlpack(type("T", (), {})())
            except isthmus.Error:
                pass
threads = [threading.Thread(target=crowd, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
for _ in range(3000):
    try:
        isthmus.from_dlpack(odd, device=device, copy=False)
    except isthmus.Error:
        refused += 1
stop.set()
for thread in threads:
    thread.join()
assert refused and made
print("fine")
""")


def test_lifetime__torch_and_jax_may_hold_tensors_at_exit():
    """numpy/numpy#22507"""
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    run("""
import numpy as np, torch, jax, isthmus, threading
keep = isthmus.empty(64, "float32")
class Holder: pass
torch.kept = isthmus.to(keep, "torch")
jax.kept = isthmus.to(keep, "jax")
np.kept = isthmus.to(torch.ones(3), "numpy")
isthmus.kept = isthmus.from_dlpack(bytearray(9))
import builtins
builtins.kept = [isthmus.from_dlpack(keep).__dlpack__(max_version=(1, 0)),
                 isthmus.from_dlpack(bytearray(5)).__dlpack__(), torch.kept]
print("fine")
""")


def test_lifetime__a_deleter_after_the_interpreter_leaks_and_lives():
    run("""
import ctypes, isthmus
from ctypes import pythonapi as api
source = bytearray(8)
capsule = isthmus.from_dlpack(source).__dlpack__(max_version=(1, 0))
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
pointer = api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
name = ctypes.create_string_buffer(b"used_dltensor_versioned")
api.PyCapsule_SetName(capsule, ctypes.cast(name, ctypes.c_char_p))
deleter = ctypes.c_void_p.from_address(pointer + 16).value
# The C library's own exit handler: called when Python is gone.
libc = ctypes.CDLL(None)
libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
libc.__cxa_atexit(deleter, pointer, None)
print("fine")
""")


def test_lifetime__sub_interpreters_are_refused_in_words():
    run("""
import sys, isthmus
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
inner = interpreters.create()
code = '''
import sys
sys.path[:] = %r
try:
    import isthmus
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise SystemExit("imported")
''' % (sys.path,)
interpreters.run_string(inner, code)
interpreters.destroy(inner)
assert isthmus.from_dlpack(b"abc").shape == (3,)
print("fine")
""")
