# SPDX-License-Identifier: Apache-2.0
"""A capsule in the clothes that frameworks want it in, and tensors for plans."""

from __future__ import annotations

from typing import Any

from . import _core


class Once:
    """An object whose ``__dlpack__`` gives one capsule, whatever is asked: the
    route has been decided already."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **asked: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def unread(
    name: str, shape: tuple[int, ...], padded: bool = False,
) -> _core.Tensor:
    """A tensor for plans only: its geometry, dense, at an aligned address that
    nobody reads."""
    return _core.wrap(None, 4096, name, tuple(shape), None, False, padded)
