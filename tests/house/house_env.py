# SPDX-License-Identifier: Apache-2.0
"""Where the tree and its build are, for the tests of the house."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ISTHMUS_BUILD") or ROOT / "build")
sys.path.insert(0, str(ROOT / "tools"))
