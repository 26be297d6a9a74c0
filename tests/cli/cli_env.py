# SPDX-License-Identifier: Apache-2.0
"""The command under test, the files it is given, and how it is run."""

import os
import pathlib
import subprocess
from typing import NamedTuple

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ISTHMUS_BUILD") or ROOT / "build")
COMMAND = BUILD / "isthmus"
DIGITS = ROOT / "examples" / "digits"
LYING = os.environ.get("ISTHMUS_LYING_PJRT") or str(BUILD / "lying_pjrt.so")

# x + y of two rows of floats, readable by every plugin.
ADD = """module @add {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>)
      -> tensor<2x3xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""


class Ended(NamedTuple):
    code: int
    out: bytes
    err: bytes

    @property
    def lines(self):
        return self.err.decode().splitlines()


def plugin(name="P1"):
    """The path of a real plugin, or a skipped test that says which is missing."""
    path = os.environ.get("ISTHMUS_" + name)
    if not path:
        pytest.skip(f"ISTHMUS_{name} names no plugin")
    return path


def lying():
    if not os.path.exists(LYING):
        pytest.skip("the lying plugin was not built")
    return LYING


def run(folder, *words, data=b"", env=None, **more):
    """Runs the command in folder; words that are paths are turned into text."""
    surroundings = {k: v for k, v in os.environ.items()
                    if k != "PJRT_NAMES_AND_LIBRARY_PATHS"}
    # Only what a test names is installed.
    surroundings["ISTHMUS_SITE_PACKAGES"] = ""
    surroundings["ISTHMUS_CACHE"] = "off"  # unless a test asks for one
    surroundings.update(env or {})
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    if "stdin" not in more:
        more["input"] = data
    done = subprocess.run([str(COMMAND), *map(str, words)], cwd=folder,
                          env=surroundings, **more)
    return Ended(done.returncode, done.stdout or b"", done.stderr or b"")


def safetensors(path, header, payload):
    """A .safetensors file with this header text and these bytes."""
    raw = header.encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + payload)


def make_files(folder):
    """The files that tests and golden files name."""
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(folder / "a.npy", a)
    np.save(folder / "fortran.npy", np.asfortranarray(a))
    np.save(folder / "ints.npy", np.arange(4, dtype=np.int32))
    np.save(folder / "swapped.npy", a.astype(">f4"))
    np.save(folder / "v2.npy", np.zeros(4, dtype="V2"))
    np.save(folder / "-dash.npy", a)
    (folder / "add.mlir").write_text(ADD)
    (folder / "bad.mlir").write_text("module { this is no program }\n")
    (folder / "not_a_plugin.so").write_bytes(b"\x7fELF and nothing more")
    (folder / "folder").mkdir()
    whole = (folder / "a.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-4])
    (folder / "empty.npy").write_bytes(b"")
    (folder / "text.npy").write_bytes(b"<html>not found</html>")
    pair = ('{"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},'
            ' "b": {"dtype": "F32", "shape": [3], "data_offsets": [%d, %d]}}')
    payload = a.tobytes() + np.ones(3, np.float32).tobytes()
    safetensors(folder / "two.safetensors", pair % (24, 36), payload)
    safetensors(folder / "overlap.safetensors", pair % (20, 32), payload[:32])
    safetensors(folder / "short.safetensors", pair % (24, 36), payload[:-1])
    (folder / "log.txt").write_text(
        "Traceback (most recent call last):\n"
        "isthmus.Error: x could not cross [IST_ERR_COPY_NEEDED 104]\n"
        "isthmus: move: cannot open b.npy [IST_ERR_FILE_OPEN 403]\n"
        "again [IST_ERR_COPY_NEEDED 104]\n")
    return folder


def preload(folder, name):
    """A library of tests/cli/NAME.c to preload into the command."""
    if b"__asan_init" in COMMAND.read_bytes():
        pytest.skip("built with a sanitizer, which wants to be loaded first")
    path = folder / (name + ".so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path,
                    ROOT / "tests" / "cli" / (name + ".c"), "-ldl"],
                   check=True)
    return str(path)


def left_over(folder, before):
    """Names in folder that were not there before."""
    return sorted(set(os.listdir(folder)) - set(before))
