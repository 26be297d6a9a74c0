# SPDX-License-Identifier: Apache-2.0
"""Compares a run's outputs with the true digits and with JAX's own outputs.

    python accuracy.py SCORES.npy LABELS.npy
"""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
TOLERANCE = 1e-5  # of a score, against JAX's own


def report(scores, labels):
    """Prints accuracy and agreement; True when the run agrees with JAX."""
    truth = np.load(FOLDER / "labels.npy")
    expected_scores = np.load(FOLDER / "expected_scores.npy")
    expected_labels = np.load(FOLDER / "expected_labels.npy")
    for array, expected in ((scores, expected_scores),
                            (labels, expected_labels)):
        if array.shape != expected.shape or array.dtype != expected.dtype:
            print(f"outputs differ in kind: {array.dtype}{array.shape}; "
                  f"needs {expected.dtype}{expected.shape}")
            return False
    right = labels == truth
    held_out = right[::7]  # never trained on; see make_data.py
    print(f"accuracy: {right.sum()} of {right.size} images ({right.mean():.2%})"
          f", of those held out {held_out.sum()} of {held_out.size} "
          f"({held_out.mean():.2%})")
    others = int((labels != expected_labels).sum())
    apart = float(np.abs(scores - expected_scores).max())
    print(f"against JAX: {others} labels differ, scores at most {apart:.1e} "
          f"apart (needs 0 and {TOLERANCE:.0e})")
    return others == 0 and apart <= TOLERANCE


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: accuracy.py SCORES.npy LABELS.npy")
    sys.exit(not report(np.load(sys.argv[1]), np.load(sys.argv[2])))
