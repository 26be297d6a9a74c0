# SPDX-License-Identifier: Apache-2.0
"""The wheel and the sdist: what is in them, that they install in a bare
environment without a compiler, and that nothing stays after uninstalling."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BACKEND = "import scikit_build_core.build as b; print(b.build_{}({!r}))"


def version():
    text = (ROOT / "include/isthmus/version.h").read_text()
    return re.search(r'IST_VERSION_STRING "(.+)"', text).group(1)


def call(command, **more):
    done = subprocess.run([str(part) for part in command], text=True,
                          capture_output=True, stdin=subprocess.DEVNULL,
                          **more)
    return done.returncode, done.stdout + done.stderr


def run(*command, **more):
    code, text = call(command, **more)
    assert code == 0, (command, text[-3000:])
    return text


@pytest.fixture(scope="session")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-c", BACKEND.format("sdist", str(folder)), cwd=ROOT)
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    run("tar", "-xzf", sdist, "-C", folder)
    return folder / f"isthmus-{version()}"


@pytest.fixture(scope="session")
def wheel(unpacked, tmp_path_factory):
    """Built from the sdist, so that both are proved at once; or the one that
    tools/make_wheel.sh made, where `./dev all` names it."""
    if "ISTHMUS_WHEEL" in os.environ:
        return Path(os.environ["ISTHMUS_WHEEL"])
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-c", BACKEND.format("wheel", str(folder)),
        cwd=unpacked)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """A Python environment that sees no compiler and no other package."""
    folder = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", folder)
    env = {"PATH": str(folder / "bin"), "HOME": str(folder), "LC_ALL": "C"}
    return folder, env


def files_of(folder):
    """Every file of an environment; compiled Python comes and goes."""
    return {path for path in folder.rglob("*")
            if "__pycache__" not in path.parts}


def test_wheel__is_one_stable_abi_wheel_with_everything(wheel):
    assert f"isthmus-{version()}-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("isthmus/__init__.py", "isthmus/_core.abi3.so",
                 "isthmus/py.typed", "isthmus/bin/isthmus",
                 "isthmus/include/isthmus/isthmus.h"):
        assert name in names
    assert not [name for name in names if name.endswith(".c")]


def test_wheel__needs_no_other_package(wheel):
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist()
                if name.endswith("METADATA"))
    needs = [line for line in archive.read(name).decode().splitlines()
             if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert needs == []


def test_wheel__works_and_leaves_nothing_behind(wheel, bare, tmp_path):
    folder, env = bare
    python = folder / "bin/python"
    before = files_of(folder)
    run(python, "-m", "pip", "install", "--no-index", wheel, env=env)
    says = run(python, "-c", "import isthmus; print(isthmus.__version__)",
               env=env, cwd=tmp_path)
    assert says.strip() == version()
    header = run(python, "-c", "import isthmus; print(isthmus.get_include())",
                 env=env, cwd=tmp_path)
    assert (Path(header.strip()) / "isthmus/isthmus.h").is_file()
    report = run(folder / "bin/isthmus", "doctor", "--json", env=env,
                 cwd=tmp_path)
    assert json.loads(report)
    run(python, "-m", "pip", "uninstall", "-y", "isthmus", env=env)
    assert files_of(folder) - before == set()


def test_missing_jsmn__is_one_clear_line(unpacked, tmp_path):
    """The header is hidden by looking for it in another root."""
    code, text = call(
        ["cmake", "-S", unpacked, "-B", tmp_path / "build", "-G", "Ninja",
         "-DISTHMUS_TESTS=OFF", "-DCMAKE_FIND_ROOT_PATH=" + str(tmp_path),
         "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY"])
    assert code != 0
    flat = " ".join(text.split())
    assert "jsmn.h was not found; needs Debian's libjsmn-dev" in flat


def test_free_threaded_python__stops_the_build_with_one_line(unpacked,
                                                             tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sysconfig\nold = sysconfig.get_config_var\n"
        "sysconfig.get_config_var = lambda name: "
        "1 if name == 'Py_GIL_DISABLED' else old(name)\n")
    code, text = call(
        [sys.executable, "-c", BACKEND.format("wheel", str(tmp_path))],
        cwd=unpacked, env=dict(os.environ, PYTHONPATH=str(tmp_path)))
    assert code != 0
    flat = " ".join(text.split())
    assert "cannot build for free-threaded Python" in flat


def test_readme_python__works_with_the_installed_wheel(wheel, tmp_path):
    site = tmp_path / "site"
    run(sys.executable, "-m", "pip", "install", "--no-index", "--no-deps",
        "--target", site, wheel)
    block = re.search(r"^```python\n(.*?)^```$",
                      (ROOT / "README.md").read_text(), re.M | re.S).group(1)
    (tmp_path / "first.py").write_text(
        block + "print(isthmus.__file__)\n")
    lines = run(sys.executable, "first.py", cwd=tmp_path,
                env=dict(os.environ, PYTHONPATH=str(site))).splitlines()
    assert lines[0].startswith("copy 48 ") and lines[1] == "alias 0"
    assert Path(lines[-1]).is_relative_to(site)
