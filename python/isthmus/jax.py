# SPDX-License-Identifier: Apache-2.0
"""What isthmus does for JAX beyond handing arrays over. Nothing of JAX is
imported until a function here is called."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _core, _errors

if TYPE_CHECKING:
    from ._artifact import Program

__all__ = ["program"]

# Names of the package's contract that come later; see isthmus.__getattr__.
_LATER = frozenset({"attach", "detach", "handles", "handles_all", "register"})


def program(
    exported: Any, target: _core.Backend | _core.Device | str, *,
    platform: str | None = None,
) -> Program:
    """Compiles what ``jax.export`` made for a plugin.

    ``exported`` is a ``jax.export.Exported``, or the bytes that its
    ``serialize()`` gave. ``target`` is a backend, a device of one, or a place
    (``"pjrt:P.so"``). The result is called as the function was: the same
    arguments (of any framework), the same structure of results, which are
    Tensors on the device.

    ``platform`` names one of the artifact's platforms, for a target whose own
    platform is none of them. What cannot be used is refused with code 216.
    """
    for name in ("jax", "jax.export"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise _errors.make(
                _errors.NO_FRAMEWORK,
                "a jax.export artifact could not be read: "
                f"{name}, which reads it, is not installed; needs pip install "
                "jax (0.4.30 or newer)") from error
    from . import _artifact
    return _artifact.program(exported, target, platform)


def __getattr__(name: str) -> object:
    if name in _LATER:
        raise _errors._Absent(
            f"not in this version: isthmus.jax.{name}; needs a later one",
            _errors.NOT_IN_VERSION)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
