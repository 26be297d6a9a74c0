# SPDX-License-Identifier: Apache-2.0
"""The main job on every plugin: the digits from the command and from Python.
Labels equal JAX's, scores lie within 1e-5, and nothing was copied, which is
shown by addresses where there are any to compare."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
WEIGHTS = ("hidden.weight", "hidden.bias", "output.weight", "output.bias")
FRAMEWORKS = ["numpy", pytest.param("torch", marks=pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="no torch here"))]


def check_outputs(scores, labels):
    np.testing.assert_array_equal(
        labels, np.load(DIGITS / "expected_labels.npy"))
    assert labels.dtype == np.int32 and scores.dtype == np.float32
    np.testing.assert_allclose(
        scores, np.load(DIGITS / "expected_scores.npy"), rtol=0, atol=1e-5)


def run_command(build, plugin, images, *more):
    places = [f"{DIGITS}/weights.safetensors:{name}" for name in WEIGHTS]
    done = subprocess.run(
        [build / "isthmus", "run", DIGITS / "digits.mlir", "--json",
         "--plugin", plugin, *places, images, *more],
        text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_command__reads_the_digits_without_a_copy(build, plugin, tmp_path):
    said = run_command(build, plugin, DIGITS / "images.npy",
                       "-o", tmp_path / "scores.npy", tmp_path / "labels.npy")
    check_outputs(np.load(tmp_path / "scores.npy"),
                  np.load(tmp_path / "labels.npy"))
    assert len(said["inputs"]) == 5 and len(said["outputs"]) == 2
    for crossing in said["inputs"] + said["outputs"]:
        receipt = crossing["receipt"]
        assert (receipt["route"], receipt["bytes_moved"],
                receipt["hops"]) == ("alias", 0, 0)
        assert receipt["reasons"]


def test_command__says_so_when_one_input_must_be_copied(
        build, plugin, tmp_path):
    """The same images sixteen bytes further on in their file."""
    data = (DIGITS / "images.npy").read_bytes()
    size = int.from_bytes(data[8:10], "little")
    moved = tmp_path / "images.npy"
    moved.write_bytes(data[:8] + (size + 16).to_bytes(2, "little")
                      + data[10:10 + size - 1] + b" " * 16
                      + data[10 + size - 1:])
    said = run_command(build, plugin, moved, "-o", tmp_path / "o.safetensors")
    routes = [crossing["receipt"]["route"] for crossing in said["inputs"]]
    assert routes == ["alias"] * 4 + ["copy"]
    receipt = said["inputs"][4]["receipt"]
    assert receipt["bytes_moved"] == 1797 * 64 * 4
    assert "unaligned" in [name for name, _ in receipt["reasons"]]
    saved = pytest.importorskip("safetensors.numpy").load_file(
        tmp_path / "o.safetensors")
    check_outputs(saved["output.0"], saved["output.1"])


@pytest.fixture
def digits(monkeypatch):
    monkeypatch.syspath_prepend(str(DIGITS))
    import digits
    return digits


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_python__reads_the_digits_without_a_copy(digits, plugin, framework):
    (scores, labels), receipts, seconds = digits.run(plugin, framework)
    assert type(scores) is np.ndarray and type(labels) is np.ndarray
    check_outputs(scores, labels)
    assert len(receipts) == 12
    for receipt in receipts[5:]:
        assert (receipt.route, receipt.bytes_moved, receipt.hops) == (
            "alias", 0, 0)
        assert receipt.reasons
    assert set(seconds) == {"compile", "run"}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_python__says_what_becomes_of_the_mapped_files(
        digits, plugin, framework):
    """Torch has no read-only tensors: there, and only there, is one copy."""
    _, receipts, _ = digits.run(plugin, framework)
    for array, receipt in zip(digits.load(framework)[0], receipts[:5],
                              strict=True):
        wanted = ("alias", 0, "kept_read_only") if framework == "numpy" else \
            ("copy", array.nbytes, "read_only_copy")
        assert (receipt.route, receipt.bytes_moved,
                receipt.reasons[0][0]) == wanted


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_python__hands_over_the_framework_s_own_memory(
        digits, plugin, framework):
    import isthmus
    device = isthmus.open("pjrt", path=str(plugin)).devices[0]
    for array in digits.load(framework)[0]:
        address = (array.ctypes.data if framework == "numpy"
                   else array.data_ptr())
        there, receipt = isthmus.to(array, device, receipt=True)
        back = isthmus.to(there, "numpy")
        assert (back.ctypes.data == address) == (receipt.route == "alias")
        assert receipt.route == "alias" and address % 64 == 0


def test_run_script__prints_every_part_of_the_job(build, plugin):
    done = subprocess.run(
        [DIGITS / "run.sh", plugin], text=True, capture_output=True,
        env={**os.environ, "ISTHMUS_BUILD": str(build),
             "ISTHMUS_PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("254 of 257") == 2
    assert done.stdout.count("0 labels differ") == 2
    has_torch = importlib.util.find_spec("torch") is not None
    assert done.stdout.count("\nalias") == (14 if has_torch else 19)
    assert done.stdout.count("\ncopy") == (5 if has_torch else 0)
    assert done.stdout.count("\ntime ") == 2
    assert "host_address" in done.stdout  # of doctor


def test_run_script__says_what_is_missing(build, tmp_path):
    clean = {key: value for key, value in os.environ.items()
             if not key.startswith("ISTHMUS_")}
    for environment, words in (
            ({"ISTHMUS_BUILD": str(build)}, "no plugin"),
            ({"ISTHMUS_BUILD": str(tmp_path), "ISTHMUS_P1": "p.so"},
             "run ./dev build first")):
        done = subprocess.run([DIGITS / "run.sh"], env={**clean, **environment},
                              text=True, capture_output=True)
        assert done.returncode == 1 and words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_accuracy__fails_when_the_outputs_are_not_jax_s(digits, capsys):
    from accuracy import report
    scores = np.load(DIGITS / "expected_scores.npy")
    labels = np.load(DIGITS / "expected_labels.npy")
    assert report(scores, labels)
    assert not report(scores + np.float32(1e-4), labels)
    assert not report(scores, (labels + 1).astype(np.int32))
    assert not report(scores.T, labels)
    assert not report(scores, labels.astype(np.int64))
    assert "254 of 257" in capsys.readouterr().out
