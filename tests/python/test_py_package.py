# SPDX-License-Identifier: Apache-2.0
"""The package: what it needs, what it says, its types, its command."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import isthmus

PACKAGE = Path(isthmus.__file__).parent


def python(code, *flags, **env):
    """Runs Python with nothing but the standard library and isthmus."""
    return subprocess.run(
        [sys.executable, "-I", "-S", *flags, "-c",
         f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n" + code],
        capture_output=True, text=True, env={**os.environ, **env})


def test_package__needs_no_numpy_and_imports_no_framework():
    done = python("""
import isthmus
for name in ("numpy", "torch", "jax", "ml_dtypes", "tensorflow"):
    assert name not in sys.modules, name
t = isthmus.from_dlpack(bytearray(b"abc"))
assert "97" in repr(t) and t.shape == (3,)
assert isthmus.plan(t, (1, 0)).route == "alias"
try:
    isthmus.to(t, "numpy")
except isthmus.Error as error:
    assert error.code == 405 and "pip install numpy" in str(error)
else:
    raise SystemExit("no error")
print("fine")
""")
    assert done.stdout == "fine\n", done.stderr


def test_package__does_not_import_frameworks_that_are_installed():
    code = """
import sys, isthmus
isthmus.from_dlpack(b"abc")
print([n for n in ("numpy", "torch", "jax") if n in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True)
    assert done.stdout == "[]\n", done.stderr


def test_package__numbers_devices_and_grants_as_the_headers_do():
    from isthmus import _sources
    folder = Path(isthmus.get_include()) / "isthmus"
    devices = {int(number): name.lower() for name, number in re.findall(
        r"\bkDL(\w+) = (\d+),", (folder / "dlpack.h").read_text())}
    ours = {it.value: it.name.replace("_", "") for it in isthmus.DeviceType}
    for number, name in devices.items():
        assert ours[number] == name
    if "ISTHMUS_SOURCE" in os.environ:  # with those that came after 1.3
        source = Path(os.environ["ISTHMUS_SOURCE"])
        text = (source / "src" / "tensor" / "device_code.def").read_text()
        listed = re.findall(r'^IST_DEVICE_CODE\((\d+), "(\w+)"', text, re.M)
        assert [(int(n), name) for n, name in listed] == [
            (it.value, it.name) for it in isthmus.DeviceType]
    grants = dict(re.findall(r"IST_GRANT_(\w+) = (\d+)",
                             (folder / "isthmus.h").read_text()))
    for name in ("FROM_SOURCE", "WRITABLE", "IMMUTABLE"):
        assert getattr(_sources, name) == int(grants[name])


def test_package__numbers_reasons_as_the_library_does():
    """A refusal that says a reason's number is told by that reason's name."""
    from isthmus import _core, _exchange, _sources
    names = {name: getattr(_sources, name) for name in (
        "RESOLVED", "BYTE_ORDER", "NARROWED", "ITEM_UNALIGNED")}
    names |= {"requires_grad": _exchange._REASONS[115],
              "not_a_tensor": _exchange._REASONS[116],
              "not_in_version": _exchange._REASONS[102]}
    for name, number in names.items():
        said = _core.refusal(104, number, "a", "b").reasons
        assert [it for it, _ in said] == [name.lower()]


def test_package__has_one_version():
    header = (Path(isthmus.get_include()) / "isthmus" / "version.h")
    text = header.read_text()
    assert isthmus.__version__ == re.search(
        r'IST_VERSION_STRING "([^"]+)"', text).group(1)


def test_package__ships_the_headers():
    folder = Path(isthmus.get_include()) / "isthmus"
    for name in ("isthmus.h", "backend.h", "dlpack.h", "version.h"):
        assert (folder / name).is_file()


def test_package__is_typed():
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "_core.pyi").is_file()


TYPED = '''
from __future__ import annotations
from typing import Any
import isthmus

t: isthmus.Tensor = isthmus.from_dlpack(b"abc", copy=None)
shape: tuple[int, ...] = t.shape
name: str = str(t.dtype)
pair: tuple[int, int] = t.__dlpack_device__()
kind: isthmus.DeviceType = t.device.type
r: isthmus.Receipt = isthmus.plan(t, "numpy", copy=False)
ids: list[str] = [reason for reason, _ in r.reasons]
moved: int = r.bytes_moved + r.hops
array: Any = isthmus.to(t, "numpy", detach=True, receipt=False)
tree: Any = isthmus.to_tree({"a": [t]}, "torch")
memory: Any = isthmus.empty((2, 3), "float32", align=128, like="numpy")
with isthmus.open("host") as backend:
    device: isthmus.Device = backend.devices[0]
    program: isthmus.Program = backend.compile("text", device=device)
    outputs: list[isthmus.Tensor] = program(t, t)
    both: tuple[list[isthmus.Tensor], list[isthmus.Receipt]] = program(
        t, receipt=True)
entry: isthmus.Entry | None = isthmus.explain(202)
loaded: Any = isthmus.load("x.npy", dtype="bfloat16")
isthmus.save("x.npy", t)
try:
    pass
except isthmus.Error as error:
    code: int = error.code
    hint: str = error.hint
view: memoryview = memoryview(t)
include: str = isthmus.get_include()
version: str = isthmus.__version__
'''


def mypy(tmp_path, path):
    pytest.importorskip("mypy")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary",
         "--cache-dir", str(tmp_path / "cache"), str(path)],
        capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})


def test_package__is_clean_under_strict_mypy(tmp_path):
    good = tmp_path / "good.py"
    good.write_text(TYPED)
    done = mypy(tmp_path, good)
    assert done.stdout == "" and done.returncode == 0, done.stdout
    bad = tmp_path / "bad.py"
    bad.write_text("import isthmus\nx: int = isthmus.plan(1, 'numpy').route\n")
    assert mypy(tmp_path, bad).returncode == 1


def test_package__lists_only_what_is_there():
    for name in isthmus.__all__:
        assert hasattr(isthmus, name)
        assert getattr(isthmus, name).__doc__ or name == "__version__"


def test_module__is_the_native_command(tmp_path):
    command = PACKAGE / "bin" / "isthmus"
    if not command.exists():
        pytest.skip("the command was not built")
    for arguments in (["explain", "202"], ["explain", "999"], ["nothing"]):
        ours = subprocess.run([sys.executable, "-m", "isthmus", *arguments],
                              capture_output=True, text=True)
        native = subprocess.run([str(command), *arguments],
                                capture_output=True, text=True)
        assert (ours.returncode, ours.stdout, ours.stderr) == (
            native.returncode, native.stdout, native.stderr)


def test_doctor__tells_which_frameworks_are_installed():
    import importlib.metadata
    import json
    if not (PACKAGE / "bin" / "isthmus").exists():
        pytest.skip("the command was not built")

    def doctor(*flags):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "isthmus", "doctor",
             *flags], capture_output=True, text=True)
        for name in ("numpy", "torch", "jax"):
            assert f" {name}\n" not in done.stderr
        return done

    done = doctor()
    found = json.loads(doctor("--json").stdout)
    assert found["backends"] and done.returncode == 0
    assert "host" in done.stdout
    for it in found["frameworks"]:
        try:
            version = importlib.metadata.version(it["name"])
        except importlib.metadata.PackageNotFoundError:
            version = None
        assert it["version"] == version
        line = f"  {it['name']} {version or 'is not installed'}\n"
        assert line in done.stdout.partition("frameworks\n")[2]
    assert [it["name"] for it in found["frameworks"]] == [
        "numpy", "torch", "jax"]
    wrong = doctor("operand")
    assert wrong.returncode == 2 and wrong.stdout == ""


def test_module__says_when_the_command_is_missing(monkeypatch, capsys):
    from isthmus import __main__ as module
    monkeypatch.setattr(module, "command", lambda: "/nowhere/isthmus")
    with pytest.raises(SystemExit) as e:
        module.main()
    text = capsys.readouterr().err
    assert e.value.code == 1 and "/nowhere/isthmus is not there" in text
    assert text.count("\n") == 1


def test_log__is_on_stderr_only_when_asked_for():
    code = """
import isthmus
try:
    isthmus.open("pjrt", path="/dev/null")
except isthmus.Error:
    print("fine")
"""
    for level, lines in (("", False), ("debug", True)):
        done = python(code, ISTHMUS_LOG=level)
        assert done.stdout == "fine\n", done.stderr
        assert all(line.startswith("isthmus: ")
                   for line in done.stderr.splitlines())
        assert bool(done.stderr) <= lines
