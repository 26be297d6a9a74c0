# SPDX-License-Identifier: Apache-2.0
"""The command under valgrind, on its main paths: no error and no leak of ours.
Plugins hold memory of their own until the end, so that only the lying plugin,
which does not, is opened here; the C tests have the others."""

import os
import shutil
import subprocess

import pytest

import cli_env

PATHS = {
    "doctor": ["doctor", "--plugin", "$LYING"],
    "probe": ["probe", "$LYING", "--json"],
    "probe refused": ["probe", "not_a_plugin.so"],
    "explain": ["explain", "[IST_ERR_ARITY 113]"],
    "route": ["route", "fortran.npy", "pjrt:$LYING", "-O", "a:ints=1,2"],
    "move": ["move", "fortran.npy", "b.npy", "--via", "template",
             "--via", "pjrt:$LYING#1", "-O", "b=2"],
    "move refused": ["move", "two.safetensors", "b.npy"],
    "move a stream": ["move", "a.npy", "-"],
    "run refused": ["run", "add.mlir", "-p", "$LYING", "a.npy", "none.npy"],
    "usage": ["move", "a.npy"],
}


@pytest.mark.parametrize("words", PATHS.values(), ids=PATHS.keys())
def test_valgrind__finds_no_error_and_no_leak(words, tmp_path):
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("valgrind is not here")
    if b"__asan_init" in cli_env.COMMAND.read_bytes():
        pytest.skip("built with a sanitizer")
    cli_env.make_files(tmp_path)
    if any("$LYING" in word for word in words):
        words = [word.replace("$LYING", cli_env.lying()) for word in words]
    plain = cli_env.run(tmp_path, *words)
    done = subprocess.run(
        [valgrind, "-q", "--leak-check=full", "--error-exitcode=99",
         "--errors-for-leak-kinds=definite,indirect,possible",
         str(cli_env.COMMAND), *words], cwd=tmp_path, capture_output=True,
        env={**os.environ, "LYING_PJRT_RULES": "addressable=1"})
    assert done.returncode != 99, done.stderr.decode()
    assert done.returncode == plain.code
