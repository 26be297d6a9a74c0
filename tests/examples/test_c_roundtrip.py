# SPDX-License-Identifier: Apache-2.0
"""The C example, built the two ways its README says, against an installed
isthmus and nothing of its sources, and run on every plugin."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import run, tool

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "c_roundtrip"
SAYS = ("in:  alias, 0 bytes moved\n"
        "out: alias, 0 bytes moved\n"
        "same memory: yes\n")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The example alone, so that nothing of the tree can be found beside."""
    folder = tmp_path_factory.mktemp("source") / "c_roundtrip"
    return shutil.copytree(EXAMPLE, folder)


@pytest.fixture(scope="module")
def by_cmake(installed, source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cmake")
    run(tool("cmake"), "-S", source, "-B", folder,
        f"-DCMAKE_PREFIX_PATH={installed}",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror")
    run(tool("cmake"), "--build", folder)
    return folder / "roundtrip"


@pytest.fixture(scope="module")
def by_pkg_config(installed, source, tmp_path_factory):
    program = tmp_path_factory.mktemp("pkg_config") / "roundtrip"
    lib = next(installed.rglob("pkgconfig")).parent
    flags = run(tool("pkg-config"), "--cflags", "--libs", "isthmus",
                env={**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig")})
    run(tool("cc"), "-std=c11", "-Wall", "-Wextra", source / "roundtrip.c",
        "-o", program, *shlex.split(flags), f"-Wl,-rpath,{lib}")
    return program


def test_cmake_build__gets_the_same_memory_back(by_cmake, plugin):
    assert run(by_cmake, plugin) == SAYS


def test_pkg_config_build__gets_the_same_memory_back(by_pkg_config, plugin):
    assert run(by_pkg_config, plugin) == SAYS


def test_no_plugin__is_one_line_and_status_one(by_cmake, tmp_path):
    for path in (tmp_path / "missing.so", EXAMPLE / "README.md"):
        done = subprocess.run([by_cmake, path], capture_output=True, text=True)
        assert done.returncode == 1 and done.stdout == ""
        assert len(done.stderr.splitlines()) == 1 and path.name in done.stderr


def test_readme__shows_what_the_example_prints():
    text = (EXAMPLE / "README.md").read_text()
    assert "\n".join("    " + line for line in SAYS.splitlines()) in text
