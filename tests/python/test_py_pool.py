# SPDX-License-Identifier: Apache-2.0
"""isthmus.pool: blocks are kept, counted, bounded and given back."""

import os
import subprocess
import sys

import isthmus
import pytest


def run(code, **env):
    return subprocess.run([sys.executable, "-c", code], text=True,
                          capture_output=True, env={**os.environ, **env})


def test_a_block_is_kept_for_the_next_tensor():
    isthmus.trim_pool()
    first = isthmus.empty((1 << 20,), "uint8")
    used = isthmus.pool()
    assert used.in_use >= 1 << 20
    assert used.peak >= used.in_use
    del first
    idle = isthmus.pool()
    assert idle.held >= 1 << 20
    second = isthmus.empty((1 << 20,), "uint8")
    assert isthmus.pool().hits == idle.hits + 1
    assert isthmus.pool().held == idle.held - (1 << 20)
    del second
    assert isthmus.trim_pool() >= 1 << 20
    assert isthmus.pool().held == 0


@pytest.mark.parametrize("text, bound", [
    ("", 512 << 20), ("0", 0), ("64K", 64 << 10), ("1G", 1 << 30)])
def test_the_environment_bounds_it(text, bound):
    done = run("import isthmus; print(isthmus.pool().bound)",
               ISTHMUS_POOL_BYTES=text)
    assert done.stdout.split() == [str(bound)], done.stderr


def test_a_bound_that_is_none_is_refused():
    done = run("import isthmus", ISTHMUS_POOL_BYTES="much")
    assert done.returncode == 1
    assert "option ISTHMUS_POOL_BYTES cannot be set" in done.stderr
