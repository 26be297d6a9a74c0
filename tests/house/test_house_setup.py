# SPDX-License-Identifier: Apache-2.0
"""./dev on a machine that lacks things says what is missing, in one list."""

import os
import shutil
import subprocess

import pytest
from house_env import ROOT


@pytest.fixture
def poor(tmp_path):
    """A PATH with a shell's few tools and no compiler, apt or Python."""
    for name in ("bash", "cat", "cut", "dirname", "id", "mkdir", "sed",
                 "sha256sum", "tr"):
        os.symlink(shutil.which(name), tmp_path / name)
    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copy(ROOT / "dev", tree)
    shutil.copytree(ROOT / "tools", tree / "tools")
    return tmp_path, tree


def dev(poor, *arguments):
    bin_folder, tree = poor
    return subprocess.run([tree / "dev", *arguments], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          env={"PATH": str(bin_folder), "LC_ALL": "C"})


def test_without_apt__the_missing_packages_are_listed(poor):
    done = dev(poor, "test")
    assert done.returncode == 1
    assert "this system has no apt" in done.stderr
    for package in ("gcc", "libcmocka-dev", "libjsmn-dev", "qemu-user"):
        assert f"  {package}" in done.stdout.splitlines()


def test_without_root__the_command_to_run_is_printed(poor):
    bin_folder, _ = poor
    for name, text in (("id", "echo 1000"), ("apt-get", "exit 99")):
        (bin_folder / name).unlink(missing_ok=True)
        (bin_folder / name).write_text(f"#!{shutil.which('sh')}\n{text}\n")
        (bin_folder / name).chmod(0o755)
    done = dev(poor, "build")
    assert done.returncode == 1
    assert "sudo apt-get install" in done.stdout
    assert "libjsmn-dev" in done.stdout


FOLDERS = ("include", "src", "cli", "tests", "bench", "examples", "abi",
           "python")


def fmt(tree, path):
    return subprocess.run(["bash", "-ec", ". tools/dev_test.sh; dev_fmt"],
                          cwd=tree, text=True, capture_output=True,
                          env={"PATH": path, "LC_ALL": "C"})


def test_fmt__formats_every_folder(poor):
    _, tree = poor
    for folder in FOLDERS:
        (tree / folder).mkdir()
        (tree / folder / "a.c").write_text("int  f( void ) ;\n")
    done = fmt(tree, os.environ["PATH"])
    assert done.returncode == 0, done.stderr
    for folder in FOLDERS:
        assert (tree / folder / "a.c").read_text() == "int f(void);\n"


def test_fmt__fails_when_the_formatter_does(poor):
    bin_folder, tree = poor
    for folder in FOLDERS:
        (tree / folder).mkdir()
        (tree / folder / "a.c").touch()
    os.symlink(shutil.which("find"), bin_folder / "find")
    (bin_folder / "clang-format-19").write_text(
        f"#!{shutil.which('sh')}\necho no such style >&2\nexit 3\n")
    (bin_folder / "clang-format-19").chmod(0o755)
    done = fmt(tree, str(bin_folder))
    assert done.returncode != 0
    assert "no such style" in done.stderr


def test_an_unknown_command__is_a_usage_error(poor):
    done = dev(poor, "frobnicate")
    assert done.returncode == 2
    assert "no such command" in done.stderr


def test_help__names_every_command(poor):
    text = dev(poor, "help").stdout
    for name in ("build", "run", "test", "bench", "asan", "tsan", "fuzz",
                 "fmt", "docs", "all"):
        assert f"./dev {name}" in text
