# SPDX-License-Identifier: Apache-2.0
"""The last count on a tensor goes without the GIL, whoever holds it: a
runtime may close then and wait for its threads, and one of those may be in
the deleter of a Python object. Found on real plugins: a NumPy view of an
output was dropped last, and the process stood still."""

import subprocess
import sys
from pathlib import Path

import pytest

# The producer's deleter is getchar() of the C library: it waits for a byte
# that only another Python thread writes.
HEAD = """
import ctypes, os, select, sys, threading
sys.path.insert(0, sys.argv[1])
import isthmus
from capsule_maker import Versioned, VersionedDeleter, _api

reader, writer = os.pipe()
os.dup2(reader, 0)
struct = Versioned(major=1, minor=0)
memory = (ctypes.c_float * 4)(1, 2, 3, 4)
shape, strides = (ctypes.c_int64 * 1)(4), (ctypes.c_int64 * 1)(1)
struct.deleter = ctypes.cast(
    ctypes.CDLL(None).getchar, VersionedDeleter)
tensor = struct.tensor
tensor.data = ctypes.addressof(memory)
tensor.device.type, tensor.ndim = 1, 1
tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = 2, 32, 1
tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
x = isthmus.from_dlpack(_api.PyCapsule_New(
    ctypes.addressof(struct), b"dltensor_versioned", None))
go, written = threading.Event(), []

def write():
    go.wait()
    written.append(os.write(writer, b"."))

thread = threading.Thread(target=write)
thread.start()
"""

# From here on the other thread gets the GIL only if this one lets it go.
TAIL = """
sys.setswitchinterval(1e6)
go.set()
del last
thread.join()
assert written == [1]
assert not select.select([reader], [], [], 0)[0]  # the deleter has read it
print("fine")
"""

LAST = {
    "tensor": "last = x; del x",
    "numpy": "last = isthmus.to(x, 'numpy'); del x",
    "torch": "last = isthmus.to(x, 'torch', read_only='allow'); del x",
    "numpy_from_dlpack":
        "import numpy; last = numpy.from_dlpack(x); del x",
    "unused_capsule": "last = x.__dlpack__(max_version=(1, 3)); del x",
    "unused_legacy_capsule": "last = x.__dlpack__(); del x",
    "memoryview": "last = memoryview(x); del x",
}


@pytest.mark.parametrize("case", LAST)
def test_last_count__goes_without_the_gil(case):
    pytest.importorskip("numpy")
    if case == "torch":
        pytest.importorskip("torch")
    # A hang is the failure that is looked for: the limit only ends it.
    done = subprocess.run(
        [sys.executable, "-c", HEAD + LAST[case] + TAIL,
         str(Path(__file__).parent)],
        capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "fine\n"
