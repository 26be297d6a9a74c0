# SPDX-License-Identifier: Apache-2.0
"""No GIL is held while a device is waited for: the device of these tests
finishes its work only when a second Python thread has run."""

import os
import subprocess
import sys

import pytest

HEAD = """
import ctypes, os, sys, tempfile, threading
import isthmus
import numpy as np

plugin = os.environ["ISTHMUS_LYING_PJRT"]
device_side = ctypes.CDLL(plugin)
backend = isthmus.open("pjrt:" + plugin)
program = backend.compile("lying.identity 11 2 3")
x = isthmus.empty((2, 3), "float32")
x[...] = np.arange(6).reshape(2, 3)
there = isthmus.to(x, backend)
device_side.lying_set_rules(b"delay_events=1")
go, done = threading.Event(), threading.Event()

def release():
    go.wait()
    while not done.is_set():
        device_side.lying_release_events()

def check(values):
    assert np.array_equal(np.asarray(values), x), values

thread = threading.Thread(target=release)
thread.start()
out = np.zeros((2, 3), "float32")
path = os.path.join(tempfile.mkdtemp(), "x.npy")
"""

# From here on the other thread gets the GIL only where this one lets it go.
GO = """
sys.setswitchinterval(1e6)
go.set()
try:
"""

TAIL = """
finally:
    sys.setswitchinterval(0.005)
    done.set()
    thread.join()
print("fine")
"""

# Each would hang for ever if it held the GIL while it waits: for the output of
# a program that is not computed yet, or for a transfer of its own.
OUTPUT = "pending, = program(there)"
WAITS = {
    "wait": (OUTPUT, "pending.wait()"),
    "to_numpy": (OUTPUT, "isthmus.to(pending, 'numpy')"),
    "to_device": (OUTPUT, "isthmus.to(pending, backend.devices[1])"),
    "to_out": (OUTPUT, "isthmus.to(pending, 'numpy', out=out); check(out)"),
    "astype": (OUTPUT, "isthmus.astype(pending, 'float16')"),
    "dlpack": (OUTPUT, "pending.__dlpack__(max_version=(1, 0))"),
    "dlpack_legacy": (OUTPUT, "pending.__dlpack__()"),
    "dlpack_to_host": (OUTPUT, "pending.__dlpack__(dl_device=(1, 0))"),
    "from_dlpack_copy": (OUTPUT, "isthmus.from_dlpack(pending, copy=True)"),
    "array": (OUTPUT, "check(np.array(pending))"),
    "address": (OUTPUT, "pending.address"),
    # The first repr imports, which lets go of the GIL by itself.
    "repr": ("repr(isthmus.from_dlpack(b'a')); " + OUTPUT,
             "assert '5.0' in repr(pending)"),
    "save": (OUTPUT, "isthmus.save(path, pending)"),
    "import": ("", "isthmus.from_dlpack(x, device=backend)"),
    "import_copy": ("", "isthmus.from_dlpack(x, device=backend, copy=True)"),
    "move": ("", "isthmus.to(x, backend)"),
    "run": ("", "program(x)"),
    "run_on_pending": (OUTPUT, "check(isthmus.to(program(pending)[0],"
                               " 'numpy'))"),
}


@pytest.mark.parametrize("case", WAITS)
def test_gil__is_let_go_of_while_a_device_is_waited_for(case):
    if "ISTHMUS_LYING_PJRT" not in os.environ:
        pytest.skip("the lying plugin was not built")
    pytest.importorskip("numpy")
    before, wait = WAITS[case]
    code = HEAD + before + GO + "    " + wait + TAIL
    # A hang is the failure that is looked for: the limit only ends it.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "fine\n"
