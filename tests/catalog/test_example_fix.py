# SPDX-License-Identifier: Apache-2.0
"""Both halves of every exampleFix are run: the first fails with the entry's
own code, the second works. Lines that begin with $ are commands.

What an example may use: numpy as np, isthmus, jax, torch; x, a float32 array
of shape (3, 4); double, the text of a program; and in the folder images.npy,
weights.safetensors and plugin.so.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import catalog_to_c  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ISTHMUS_BUILD", ROOT / "build"))
PLUGIN = os.environ.get("ISTHMUS_P1")
EXAMPLES = [(number, entry) for number, entry in catalog_to_c.own()
            if entry["exampleFix"]]

# Runs each argument as a program of its own and prints how it ended.
RUNNER = '''
import sys
import numpy as np
import isthmus

DOUBLE = """
func.func public @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = stablehlo.add %x, %x : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
"""
for text in sys.argv[1:]:
    names = {"np": np, "isthmus": isthmus, "double": DOUBLE}
    names["x"] = np.arange(12, dtype="float32").reshape(3, 4)
    for name in ("jax", "torch"):
        if name + "." in text:
            names[name] = __import__(name)
    try:
        exec(text, names)
    except isthmus.Error as error:
        print("code", int(error.code))
    else:
        print("works")
'''


def halves(example):
    """The code before and the code after."""
    return re.fullmatch(r"# before\n(.*)\n# after\n(.*)", example,
                        re.S).groups()


@pytest.fixture
def folder(tmp_path):
    """A folder with the files that an example may use."""
    for name in ("images.npy", "weights.safetensors"):
        shutil.copy(ROOT / "examples/digits" / name, tmp_path)
    if PLUGIN:
        (tmp_path / "plugin.so").symlink_to(PLUGIN)
    return tmp_path


def run(*command, folder):
    return subprocess.run([str(c) for c in command], cwd=folder, text=True,
                          capture_output=True)


def run_command(text, folder):
    """How a command ended: "works", or "code" and the code that it printed."""
    words = shlex.split(text.removeprefix("$ "))
    assert words[0] == "isthmus"
    done = run(BUILD / "isthmus", *words[1:], folder=folder)
    found = re.findall(r"\[IST_ERR_\w+ (\d+)\]$", done.stderr, re.M)
    assert done.returncode == (1 if found else 0), done.stderr
    return f"code {found[0]}" if found else "works"


def outcomes(texts, folder):
    """How each text ended."""
    if all(text.startswith("$ ") for text in texts):
        return [run_command(text, folder) for text in texts]
    done = run(sys.executable, "-c", RUNNER, *texts, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("number, entry", EXAMPLES,
                         ids=[entry["slug"] for _, entry in EXAMPLES])
def test_example_fails_before_and_works_after(number, entry, folder):
    texts = halves(entry["exampleFix"])
    if "plugin.so" in "".join(texts) and not PLUGIN:
        pytest.skip("ISTHMUS_P1: no plugin wheel on this machine")
    if "torch" in "".join(texts):
        pytest.importorskip("torch")
    assert outcomes(texts, folder) == [f"code {number}", "works"]
