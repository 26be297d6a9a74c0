# SPDX-License-Identifier: Apache-2.0
"""The digits program on a PJRT plugin, from Python: torch tensors in, NumPy
arrays out, no JAX.

    python digits.py PLUGIN.so [--numpy]

With --numpy, or where torch is not installed, NumPy arrays go in.
"""

import argparse
import importlib.util
import sys
import time
from pathlib import Path

import isthmus
from accuracy import FOLDER, report

WEIGHTS = ("hidden.weight", "hidden.bias", "output.weight", "output.bias")
INPUTS = (*WEIGHTS, "images")
NAMES = (*INPUTS, *INPUTS, "scores", "labels")


def load(framework):
    """The program's arguments, in its order, as arrays of a framework, and the
    receipts: what is mapped from a file is read-only, and a framework that
    has no such arrays gets a copy."""
    weights = isthmus.load(FOLDER / "weights.safetensors")
    images = isthmus.load(FOLDER / "images.npy")
    return isthmus.to_tree([*(weights[name] for name in WEIGHTS), images],
                           framework, receipt=True)


def run(plugin, framework):
    """(scores, labels) as NumPy arrays, the receipts of every crossing (from
    the files, to the device, back), the seconds."""
    arguments, loaded = load(framework)
    device = isthmus.open("pjrt", path=str(plugin)).devices[0]
    start = time.perf_counter()
    program = device.backend.compile((FOLDER / "digits.mlir").read_text())
    compiled = time.perf_counter()
    inputs, receipts = isthmus.to_tree(arguments, device, receipt=True)
    results = [isthmus.to(output, "numpy", receipt=True)
               for output in program(*inputs)]
    seconds = {"compile": compiled - start,
               "run": time.perf_counter() - compiled}
    arrays, back = zip(*results)
    return arrays, [*loaded, *receipts, *back], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("plugin", type=Path)
    parser.add_argument("--numpy", action="store_true")
    chosen = parser.parse_args()
    framework = "numpy" if chosen.numpy else "torch"
    if framework == "torch" and not importlib.util.find_spec("torch"):
        print("torch is not installed here: NumPy arrays go in instead")
        framework = "numpy"
    try:
        (scores, labels), receipts, seconds = run(chosen.plugin, framework)
    except isthmus.Error as error:
        sys.exit(f"digits: {error}")
    for name, receipt in zip(NAMES, receipts, strict=True):
        print(f"{receipt.route:5}  {name}: {receipt.source} -> "
              f"{receipt.target}, moved {receipt.bytes_moved} bytes")
        for reason, text in receipt.reasons:
            print(f"  {reason}: {text}")
    print("time  " + ", ".join(f"{name} {value * 1000:.1f} ms"
                               for name, value in seconds.items()))
    sys.exit(not report(scores, labels))


if __name__ == "__main__":
    main()
