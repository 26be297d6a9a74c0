# SPDX-License-Identifier: Apache-2.0
"""The digits example's committed files: what they promise to a plugin, to a
reader and to whoever makes them again. Running them is tested elsewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
WEIGHTS = ("hidden.weight", "hidden.bias", "output.weight", "output.bias")
MADE = ("images.npy", "labels.npy", "weights.safetensors", "digits.mlir",
        "expected_scores.npy", "expected_labels.npy")

# Makes the files on one chosen processor: folder, script, processor.
MAKE = """
import os, runpy, sys
os.sched_setaffinity(0, {int(sys.argv[3])})
runpy.run_path(sys.argv[2], run_name="__main__")
"""


def load_weights():
    safetensors = pytest.importorskip("safetensors.numpy")
    return safetensors.load_file(DIGITS / "weights.safetensors")


def probabilities(images):
    """The network in float64, written down again without JAX."""
    w1, b1, w2, b2 = (load_weights()[name].astype(np.float64)
                      for name in WEIGHTS)
    logits = np.maximum(images / 16 @ w1 + b1, 0) @ w2 + b2
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def test_expected_outputs__agree_with_double_arithmetic():
    scores = probabilities(np.load(DIGITS / "images.npy").astype(np.float64))
    expected = np.load(DIGITS / "expected_scores.npy")
    assert expected.dtype == np.float32
    np.testing.assert_allclose(expected, scores, rtol=0, atol=1e-5)
    labels = np.load(DIGITS / "expected_labels.npy")
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, scores.argmax(axis=1))


def test_labels__are_not_decided_by_rounding():
    scores = np.sort(np.load(DIGITS / "expected_scores.npy"), axis=1)
    assert (scores[:, -1] - scores[:, -2]).min() > 1e-3


def test_network__reads_held_out_digits():
    labels = np.load(DIGITS / "labels.npy")
    right = np.load(DIGITS / "expected_labels.npy") == labels
    assert right[::7].mean() > 0.96


def test_every_tensor__starts_aligned_for_aliasing():
    data = (DIGITS / "weights.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    assert tuple(header) == WEIGHTS
    for entry in header.values():
        assert (8 + size + entry["data_offsets"][0]) % 64 == 0
    for name in ("images", "labels"):
        array = np.load(DIGITS / f"{name}.npy", mmap_mode="r")
        assert array.offset % 64 == 0 and array.flags.c_contiguous


def test_program__says_its_arguments_in_order_and_no_source_path():
    text = (DIGITS / "digits.mlir").read_text()
    main = next(line for line in text.splitlines() if "@main(" in line)
    assert re.findall(r"%arg\d: tensor<([^>]*)>", main) == [
        "64x64xf32", "64xf32", "64x10xf32", "10xf32", "1797x64xf32"]
    for word in ("loc(", ".py", "/", "vhlo"):
        assert word not in text


def test_notice__names_the_data_set_and_its_licence():
    notice = (DIGITS.parents[1] / "NOTICE").read_text()
    for words in ("Optical Recognition of Handwritten Digits", "Alpaydin",
                  "CC BY 4.0", "images.npy", "labels.npy"):
        assert words in notice


def test_making_again__gives_the_same_bytes(tmp_path):
    pytest.importorskip("jax")
    pytest.importorskip("sklearn")
    processors = sorted(os.sched_getaffinity(0))
    runs = [subprocess.Popen(
        [sys.executable, "-c", MAKE, str(tmp_path / name),
         str(DIGITS / "make_data.py"), str(processor)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name, processor in (("first", processors[0]),
                                ("second", processors[-1]))]
    said = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert "held out:" in said[0][0] and said[0][0] == said[1][0]
    for name in MADE:
        first = (tmp_path / "first" / name).read_bytes()
        assert first == (tmp_path / "second" / name).read_bytes(), name
    # Trained numbers may differ in their last bits on another processor.
    for name in MADE[:2] + MADE[3:4]:
        first = (tmp_path / "first" / name).read_bytes()
        assert first == (DIGITS / name).read_bytes(), name
