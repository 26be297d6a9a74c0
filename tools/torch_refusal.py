# SPDX-License-Identifier: Apache-2.0
"""Reads pip's dry-run report and says why its torch is not to be installed.

Prints one line when the report holds a CUDA build; nothing for a CPU build.
"""

import json
import sys


def refusal(report):
    """The reason, or an empty string."""
    cuda = ("nvidia", "cuda", "triton")
    for item in report["install"]:
        name = item["metadata"]["name"].lower()
        if name.startswith(cuda):
            return f"pip would take a CUDA build (it needs {name})"
    return ""


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(refusal(json.load(file)), end="")
