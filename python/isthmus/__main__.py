# SPDX-License-Identifier: Apache-2.0
"""python -m isthmus: the native command that came with the package; doctor
also tells which frameworks are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from typing import NoReturn

_FRAMEWORKS = ("numpy", "torch", "jax")


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
    arguments = sys.argv[1:]
    # The command looks for plugins where this Python has its packages.
    os.environ.setdefault("ISTHMUS_SITE_PACKAGES", ":".join(
        folder for folder in sys.path if os.path.isdir(folder)))
    if arguments[:1] == ["doctor"] and not {"-h", "--help"} & {*arguments}:
        sys.exit(_doctor(path, arguments))
    os.execv(path, [path, *arguments])


def _frameworks() -> list[dict[str, str | None]]:
    """Found, never imported; a version is None where none is installed."""
    found: list[dict[str, str | None]] = []
    for name in _FRAMEWORKS:
        version = None
        if importlib.util.find_spec(name) is not None:
            try:
                version = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                version = "unknown"
        found.append({"name": name, "version": version})
    return found


def _doctor(path: str, arguments: list[str]) -> int:
    """The native doctor, and the frameworks after it."""
    as_json = "--json" in arguments
    done = subprocess.run(
        [path, *arguments], stdout=subprocess.PIPE if as_json else None)
    try:
        if as_json:
            _say_json(done.stdout.decode())
        elif done.returncode != 2:  # a usage that is wrong
            print("frameworks")
            for it in _frameworks():
                print(f"  {it['name']} {it['version'] or 'is not installed'}")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    code = done.returncode
    return code if code >= 0 else 128 - code


def _say_json(document: str) -> None:
    end = document.rfind("}")
    if end >= 0:
        more = json.dumps(_frameworks())
        document = f"{document[:end]},\"frameworks\":{more}{document[end:]}"
    sys.stdout.write(document)


if __name__ == "__main__":
    main()
