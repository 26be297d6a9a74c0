# SPDX-License-Identifier: Apache-2.0
"""A long copy tells how far it is, stops when it is told to or when the user
presses Ctrl-C, and may use threads."""

import ctypes
import itertools
import operator
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import isthmus
from isthmus import _core

ROWS, COLUMNS = 3000, 4000
NBYTES = ROWS * COLUMNS * 4


@pytest.fixture(scope="module")
def source():
    return np.arange(ROWS * COLUMNS, dtype="float32").reshape(COLUMNS, ROWS).T


def calls_of(function):
    """Calls the function with a progress; its result and what was told."""
    told = []
    result = function(lambda done, total: told.append((done, total)))
    return result, told


def check_told(told, total=NBYTES):
    assert told[0] == (0, total) and told[-1] == (total, total)
    done = [step for step, _ in told]
    assert done == sorted(done) and {all for _, all in told} == {total}


def test_to__tells_from_nothing_to_all(source):
    result, told = calls_of(lambda progress: isthmus.to(
        source, "numpy", copy=True, progress=progress))
    assert np.array_equal(result, source)
    check_told(told)
    assert len(told) > 3


def test_to__tells_of_every_way_to_copy(source):
    with isthmus.open("template") as backend:
        moved, told = calls_of(lambda progress: isthmus.to(
            source, backend, progress=progress))
        check_told(told)
        _, told = calls_of(lambda progress: isthmus.to(
            moved, "numpy", copy=True, progress=progress))
        check_told(told)
    out = np.zeros((ROWS, COLUMNS), "float32")
    _, told = calls_of(lambda progress: isthmus.to(
        source, "numpy", out=out, progress=progress))
    check_told(told)
    assert np.array_equal(out, source)


def test_plan__takes_a_progress_and_calls_nobody(source):
    receipt, told = calls_of(lambda progress: isthmus.plan(
        source.astype(">f4"), "numpy", progress=progress))
    assert receipt.route == "copy" and told == []


def test_to__tells_nothing_of_an_alias(source):
    _, told = calls_of(lambda progress: isthmus.to(
        source, "numpy", progress=progress))
    assert told == []


def test_save__tells_and_leaves_nothing_when_cancelled(source, tmp_path):
    path = tmp_path / "x.npy"
    _, told = calls_of(lambda progress: isthmus.save(
        path, source[:, ::2], progress=progress))
    check_told(told, NBYTES)  # half of it, twice
    path.unlink()
    for stop in range(len(told)):
        seen = iter(range(len(told)))
        with pytest.raises(isthmus.Error, match="cancelled"):
            isthmus.save(path, source[:, ::2],
                         progress=lambda done, total: next(seen) != stop)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [
    lambda x: x.astype(">f4"),
    lambda x: np.ndarray(x.shape, "f4", b"1" + x.tobytes(), 1)])
def test_to__tells_of_what_numpy_copies(source, make):
    """Foreign byte order, items off their size."""
    pytest.importorskip("torch")
    x = make(source)
    result, told = calls_of(lambda progress: isthmus.to(
        x, "torch", progress=progress))
    assert np.array_equal(result.numpy(), source)
    check_told(told)
    with pytest.raises(isthmus.Error, match="after [1-9][0-9]* of") as caught:
        isthmus.to(x, "torch", progress=lambda done, total: done == 0)
    assert caught.value.code == 119
    with pytest.raises(isthmus.Error, match="needs a callable"):
        isthmus.to(x, "torch", progress=3)


def test_to__tells_before_much_more_is_written(source):
    for x in (source, source.astype(">f4"), source.astype(">f4").ravel()):
        _, told = calls_of(lambda progress: isthmus.to(
            x, "numpy", copy=True, progress=progress))
        steps = np.diff([done for done, _ in told])
        assert steps.max() <= 8 << 20


@pytest.mark.parametrize("answer, goes_on", [
    (None, True), (True, True), (1, True), (0, True), ("", True),
    (np.True_, True), (False, False), (np.False_, False)])
def test_to__goes_on_unless_the_answer_is_false(source, answer, goes_on):
    if goes_on:
        isthmus.to(source, "numpy", copy=True, progress=lambda d, t: answer)
        return
    with pytest.raises(isthmus.Error) as caught:
        isthmus.to(source, "numpy", copy=True, progress=lambda d, t: answer)
    assert caught.value.code == 119
    assert caught.value.entry.slug == "cancelled"


def test_to__raises_what_progress_raises(source):
    def fail(done, total):
        if done > 0:
            raise LookupError("told you")
    with pytest.raises(LookupError, match="told you"):
        isthmus.to(source, "numpy", copy=True, progress=fail)
    capsule = np.ones(4).__dlpack__()
    with pytest.raises(LookupError):
        isthmus.to(capsule, "numpy", copy=True,
                   progress=lambda d, t: {}["missing"])


def test_to__refuses_a_progress_that_is_no_function(source):
    with pytest.raises(isthmus.Error, match="needs a callable"):
        isthmus.to(source, "numpy", copy=True, progress=3)
    with pytest.raises(isthmus.Error, match="needs a callable"):
        isthmus.to(source, "numpy", out=np.zeros((ROWS, COLUMNS), "f4"),
                   progress="often")


def test_cancelled__copy_into_is_left_partly_written(source):
    out = np.full((ROWS, COLUMNS), -1, "float32")
    with pytest.raises(isthmus.Error, match="cancelled"):
        isthmus.to(source, "numpy", out=out,
                   progress=lambda done, total: done < total // 2)
    assert out[0, 0] == 0 and out[-1, -1] == -1


# A signal that arrives while C code runs: its handler runs no earlier than the
# copy looks for it. PyErr_SetInterrupt is what Ctrl-C does; called through
# ctypes, from C, no line of Python runs in between.
interrupt = ctypes.pythonapi.PyErr_SetInterrupt
interrupt.restype = None


def test_interrupt__stops_a_copy_with_a_progress(source):
    out = np.full((ROWS, COLUMNS), -1, "float32")
    with pytest.raises(KeyboardInterrupt):
        isthmus.to(source, "numpy", out=out, progress=interrupt)
    assert out[-1, -1] == -1


def test_interrupt__stops_a_copy_without_one():
    big = isthmus.from_dlpack(np.zeros((80 << 20,), "uint8")[::-1])
    out = np.full(big.shape, 7, "uint8")
    into = isthmus.from_dlpack(out)
    calls = [(interrupt, 0, 0), (_core.copy_into, big, into, None)]
    with pytest.raises(KeyboardInterrupt):
        list(itertools.starmap(operator.call, calls))
    assert out[0] == 0 and out[-1] == 7


def test_interrupt__runs_a_handler_and_goes_on():
    big = isthmus.from_dlpack(np.zeros((80 << 20,), "uint8")[::-1])
    into = isthmus.from_dlpack(np.full(big.shape, 7, "uint8"))
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(
        np.from_dlpack(into)[-1]))
    try:
        calls = [(interrupt, 0, 0), (_core.copy_into, big, into, None)]
        list(itertools.starmap(operator.call, calls))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [7] and np.from_dlpack(into)[-1] == 0


def test_progress__works_on_any_thread(source):
    answers = {}

    def work(name):
        answers[name] = calls_of(lambda progress: isthmus.to(
            source, "numpy", copy=True, progress=progress))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result, told in answers.values():
        assert np.array_equal(result, source)
        check_told(told)


def run(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env},
        capture_output=True, text=True)


def test_threads__copy_the_same():
    done = run("""
import threading
import numpy as np
import isthmus
x = np.arange(3000 * 4000, dtype="float32").reshape(4000, 3000).T

def work(told):
    y = isthmus.to(x, "numpy", copy=True,
                   progress=lambda done, total: told.append(done))
    assert np.array_equal(x, y) and told[-1] == x.nbytes

many = [threading.Thread(target=work, args=([],)) for _ in range(8)]
for thread in many: thread.start()
for thread in many: thread.join()
work([])
print("fine")
""", ISTHMUS_THREADS="3")
    assert done.stdout == "fine\n", done.stderr


def test_threads__do_not_hang_a_forked_child():
    done = run("""
import os
import numpy as np
import isthmus
x = np.arange(3000 * 1000, dtype="float32").reshape(1000, 3000).T
isthmus.to(x, "numpy", copy=True)
child = os.fork()
if child == 0:
    assert np.array_equal(isthmus.to(x, "numpy", copy=True), x)
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
print("fine")
""", ISTHMUS_THREADS="3")
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("text", ["0", "many", "-1", "3 ", "100000"])
def test_threads__that_are_no_number_are_refused(text):
    done = run("import isthmus", ISTHMUS_THREADS=text)
    assert done.returncode == 1
    assert "option ISTHMUS_THREADS cannot be set" in done.stderr
    assert "needs a number from 1 to 256" in done.stderr
