# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts in place is whole, and uninstall takes it all.

That a program can be built against it is tested with examples/c_roundtrip.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], text=True,
                          capture_output=True, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A build folder of its own: an installation leaves notes in there."""
    folder = tmp_path_factory.mktemp("build")
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja",
        "-DISTHMUS_TESTS=OFF")
    run("cmake", "--build", folder)
    return folder


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in
                  folder.rglob("*"))


def test_install__puts_everything_in_place(built, tmp_path):
    prefix = tmp_path / "prefix"
    run("cmake", "--install", built, "--prefix", prefix)
    found = everything(prefix)
    for name in ("include/isthmus/isthmus.h", "libisthmus.a", "libisthmus.so",
                 "isthmus-config.cmake", "pkgconfig/isthmus.pc",
                 "bin/isthmus"):
        assert any(path.endswith(name) for path in found), name
    run("cmake", "--build", built, "--target", "uninstall")


def test_uninstall__leaves_no_file_and_no_folder(built, tmp_path):
    run("cmake", "--install", built, "--prefix", tmp_path / "prefix")
    run("cmake", "--build", built, "--target", "uninstall")
    assert everything(tmp_path) == []


def test_uninstall__keeps_what_others_put_there(built, tmp_path):
    prefix = tmp_path / "prefix"
    theirs = prefix / "include" / "isthmus" / "theirs.h"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    (prefix / "lib").mkdir()
    run("cmake", "--install", built, "--prefix", prefix)
    run("cmake", "--build", built, "--target", "uninstall")
    assert everything(prefix) == [
        "include", "include/isthmus", "include/isthmus/theirs.h", "lib"]


def test_uninstall_without_install__says_so(built):
    done = subprocess.run(["cmake", "--build", built, "--target", "uninstall"],
                          text=True, capture_output=True)
    assert done.returncode != 0
    assert "install first" in done.stdout + done.stderr


def test_installed_files__name_no_path_of_the_build(built, tmp_path):
    prefix = tmp_path / "prefix"
    run("cmake", "--install", built, "--prefix", prefix)
    for path in prefix.rglob("*"):
        if path.suffix in (".cmake", ".pc", ".h"):
            text = path.read_text()
            assert str(ROOT) not in text and str(built) not in text, path
    run("cmake", "--build", built, "--target", "uninstall",
        env=dict(os.environ))
