# SPDX-License-Identifier: Apache-2.0
"""No GIL is held while a device is waited for: the device of these tests
finishes its work only when a second Python thread has run."""

import os
import subprocess
import sys

import pytest

HEAD = """
import ctypes, os, tempfile, threading
import isthmus
import numpy as np

plugin = os.environ["ISTHMUS_LYING_PJRT"]
device_side = ctypes.CDLL(plugin)
backend = isthmus.open("pjrt:" + plugin)
program = backend.compile("lying.identity 11 2 3")
x = isthmus.empty((2, 3), "float32")
x[...] = np.arange(6).reshape(2, 3)
device_side.lying_set_rules(b"delay_events=1")
done, started = threading.Event(), threading.Event()

def release():
    started.set()
    while not done.is_set():
        device_side.lying_release_events()

def on_device():
    return isthmus.to(x, backend)

def check(values):
    assert np.array_equal(np.asarray(values), x), values

thread = threading.Thread(target=release)
thread.start()
started.wait()
try:
"""

TAIL = """
finally:
    done.set()
    thread.join()
print("fine")
"""

# Each would hang for ever if it held the GIL while it waits.
WAITS = {
    "to_a_device": "on_device()",
    "from_dlpack": "isthmus.from_dlpack(x, device=backend)",
    "from_dlpack_copy": "isthmus.from_dlpack(x, device=backend, copy=True)",
    "wait": "on_device().wait()",
    "to_numpy": "check(isthmus.to(on_device(), 'numpy'))",
    "to_torch": "check(isthmus.to(on_device(), 'torch'))",
    "plan": "isthmus.plan(on_device(), 'numpy')",
    "dlpack": "on_device().__dlpack__(max_version=(1, 0))",
    "dlpack_to_host": "on_device().__dlpack__(dl_device=(1, 0))",
    "array": "check(np.array(on_device()))",
    "address": "on_device().address",
    "repr": "assert '5.0' in repr(on_device())",
    "fill": "out = np.zeros((2, 3), 'float32');"
            "isthmus.to(on_device(), 'numpy', out=out); check(out)",
    "device_to_device":
        "check(isthmus.to(isthmus.to(on_device(), backend.devices[1]),"
        " 'numpy'))",
    "save": "path = os.path.join(tempfile.mkdtemp(), 'x.npy');"
            "isthmus.save(path, on_device()); check(np.load(path))",
    "program": "check(isthmus.to(program(x)[0], 'numpy'))",
    "drop": "tensor = on_device(); del tensor",
    "close": "t = on_device(); backend.close(); t.close()",
}


@pytest.mark.parametrize("case", WAITS)
def test_gil__is_let_go_of_while_a_device_is_waited_for(case):
    if "ISTHMUS_LYING_PJRT" not in os.environ:
        pytest.skip("the lying plugin was not built")
    pytest.importorskip("numpy")
    if "torch" in case:
        pytest.importorskip("torch")
    code = HEAD + "    " + WAITS[case] + TAIL
    # A hang is the failure that is looked for: the limit only ends it.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "fine\n"
