# SPDX-License-Identifier: Apache-2.0
"""The laws of the tree, on the tree."""

import subprocess

import pytest
from house_env import ROOT
import house_tree

SOURCES = house_tree.read_tree(ROOT)


def test_the_tree__was_read():
    paths = {source.path for source in SOURCES}
    assert {"dev", "CMakeLists.txt", "include/isthmus/isthmus.h"} <= paths


@pytest.mark.parametrize("check", house_tree.CHECKS,
                         ids=lambda check: check.__name__)
def test_the_tree__keeps_the_law(check):
    assert list(check(SOURCES)) == []


def test_c_sources__are_formatted():
    files = [source.path for source in SOURCES
             if source.path.endswith((".c", ".h"))]
    done = subprocess.run(
        ["clang-format-19", "--dry-run", "-Werror", *files], cwd=ROOT,
        capture_output=True, text=True)
    bad = sorted({line.split(":")[0] for line in done.stderr.splitlines()
                  if "error:" in line})
    assert bad == [], "./dev fmt puts this right"
