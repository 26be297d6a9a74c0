# SPDX-License-Identifier: Apache-2.0
"""Memory of the command: under valgrind no error and no leak of ours, and each
allocation of its own that fails is one line, exit code 1 and no half of a file.

Real plugins keep memory until the end, so that the lying plugin, which does
not, is the one opened here; the C tests have the others."""

import os
import re
import shutil
import subprocess

import pytest

import cli_env

PATHS = {
    "doctor": ["doctor", "--plugin", "$LYING"],
    "probe": ["probe", "$LYING", "--json"],
    "probe refused": ["probe", "not_a_plugin.so"],
    "explain": ["explain", "[IST_ERR_ARITY 113]"],
    "route": ["route", "fortran.npy", "pjrt:$LYING"],
    "route refused": ["route", "a.npy", "pjrt:$LYING", "-O", "a:ints=1,2"],
    "move": ["move", "fortran.npy", "b.npy", "--via", "template",
             "--via", "pjrt:$LYING#1", "-O", "alignment=128"],
    "move refused": ["move", "two.safetensors", "b.npy"],
    "move a stream": ["move", "a.npy", "-"],
    "run": ["run", "add_one.lying", "-p", "$LYING", "two.safetensors:w",
            "-o", "b.safetensors"],
    "run refused": ["run", "add_one.lying", "-p", "$LYING", "ints.npy"],
    "usage": ["move", "a.npy"],
}
SWEPT = {
    "move": ["move", "fortran.npy", "b.npy", "--via", "template"],
    "move to another file": ["move", "two.safetensors:w", "b.safetensors:x"],
    "move over a plugin": ["move", "fortran.npy", "b.npy", "--via",
                           "pjrt:$LYING#1", "-O", "cpu_device_count=2"],
    "run": PATHS["run"],
    "route": ["route", "fortran.npy", "pjrt:$LYING#1"],
    "explain": PATHS["explain"],
}


@pytest.fixture
def folder(tmp_path):
    if b"__asan_init" in cli_env.COMMAND.read_bytes():
        pytest.skip("built with a sanitizer, which has its own allocator")
    cli_env.make_files(tmp_path)
    # float32 is number 11 of PJRT's types.
    (tmp_path / "add_one.lying").write_text("lying.add_one_f32 11 2 3\n")
    return tmp_path


def named(words):
    if any("$LYING" in word for word in words):
        return [word.replace("$LYING", cli_env.lying()) for word in words]
    return words


@pytest.mark.parametrize("words", PATHS.values(), ids=PATHS.keys())
def test_valgrind__finds_no_error_and_no_leak(words, folder):
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("valgrind is not here")
    words = named(words)
    plain = cli_env.run(folder, *words)
    done = subprocess.run(
        [valgrind, "-q", "--leak-check=full", "--error-exitcode=99",
         "--errors-for-leak-kinds=definite,indirect,possible",
         str(cli_env.COMMAND), *words], cwd=folder, capture_output=True,
        env={**os.environ, "LYING_PJRT_RULES": "addressable=1"})
    assert done.returncode != 99, done.stderr.decode()
    assert done.returncode == plain.code


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    return cli_env.preload(tmp_path_factory.mktemp("shim"), "failing_malloc")


@pytest.mark.parametrize("words", SWEPT.values(), ids=SWEPT.keys())
def test_each_allocation_that_fails__is_one_line_and_no_file(words, folder,
                                                             shim):
    words = named(words)
    log = folder / "log"
    before = os.listdir(folder) + ["log"]
    faults = 0
    while True:
        done = cli_env.run(folder, *words, env={
            "LD_PRELOAD": shim, "FAIL_AT": str(faults + 1),
            "FAULT_LOG": str(log), "LYING_PJRT_RULES": "addressable=1"})
        if not log.exists():
            break
        faults += 1
        log.unlink()
        assert (done.code, done.out) == (1, b""), (faults, done)
        assert re.fullmatch(r"isthmus: .*\[IST_ERR_\w+ \d+\]\n",
                            done.err.decode()), (faults, done)
        assert cli_env.left_over(folder, before) == [], faults
    # The run without a fault: all is well, and each allocation was failed.
    assert done.code == 0, done
    assert faults > 0
