# SPDX-License-Identifier: Apache-2.0
"""What gcc builds without a warning, clang takes without one too."""

import subprocess

import pytest
from house_env import ROOT

FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
         "-Wconversion", "-Werror", "-fsyntax-only", "-Iinclude", "-Isrc",
         "-Itests", "-Icli"]
FOLDERS = ["src", "cli", "tests", "bench", "abi"]


def complaints(files):
    """clang's errors, one line each; no file is not asked about."""
    if not files:
        return []
    done = subprocess.run(["clang-19", *FLAGS, *map(str, files)], cwd=ROOT,
                          capture_output=True, text=True)
    return [line for line in done.stderr.splitlines() if " error: " in line]


@pytest.mark.parametrize("folder", FOLDERS)
def test_clang__finds_nothing_to_warn_about(folder):
    files = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.c")]
    assert complaints(sorted(files)) == []


def test_a_planted_conversion__is_found(tmp_path):
    (tmp_path / "a.c").write_text(
        "int f(long n);\nint f(long n) { return n; }\n")
    assert len(complaints([tmp_path / "a.c"])) == 1
