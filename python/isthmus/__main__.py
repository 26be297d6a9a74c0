# SPDX-License-Identifier: Apache-2.0
"""python -m isthmus: the native command that came with the package."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def command() -> str:
    """Where the native command is in this package."""
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(here, "bin", "isthmus")


def main() -> NoReturn:
    """Becomes the command: same arguments, output and exit code."""
    path = command()
    if not os.access(path, os.X_OK):
        print(
            f"isthmus: the command could not be started: {path} is not there; "
            "needs the wheel, or a build of the command (cmake --build)",
            file=sys.stderr)
        sys.exit(1)
    sys.stdout.flush()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
