# SPDX-License-Identifier: Apache-2.0
"""isthmus.pool and isthmus.trim_pool: the idle memory that copies reuse."""

from __future__ import annotations

from typing import NamedTuple

from . import _core


class Pool(NamedTuple):
    """The memory that isthmus makes for elements, in bytes: blocks of 64 KiB
    and more that nobody uses are kept for the next tensor of their size."""

    bound: int  # most that are kept idle: ISTHMUS_POOL_BYTES
    held: int  # idle now
    in_use: int  # held by tensors now
    peak: int  # most of both together so far
    hits: int  # blocks that were there
    misses: int  # blocks that had to be made


def pool() -> Pool:
    """What the pool of blocks holds, and how often it helped."""
    return Pool(*_core.pool())


def trim_pool() -> int:
    """Gives all idle blocks back to the system; returns their bytes."""
    return _core.trim_pool()
