# SPDX-License-Identifier: Apache-2.0
"""Tensors for plans."""

from __future__ import annotations

from . import _core


def unread(
    name: str, shape: tuple[int, ...], padded: bool = False,
) -> _core.Tensor:
    """A tensor for plans only: its geometry, dense, at an aligned address that
    nobody reads."""
    return _core.wrap(None, 4096, name, tuple(shape), None, False, padded)
