# SPDX-License-Identifier: Apache-2.0
"""The element types for the adapters: the rows of src/tensor/dtype.def."""

from __future__ import annotations

from typing import NamedTuple

from . import _core


class Row(NamedTuple):
    """An element type and its name in each framework; None or 0 where it has
    none. ``torch_lanes`` is how many elements torch counts as one."""

    number: int
    name: str
    code: int
    bits: int
    npy: str | None
    format: str | None
    safetensors: str | None
    pjrt: int
    torch: str | None
    torch_lanes: int
    jax: str | None


ROWS = tuple(Row(*row) for row in _core.dtypes())
BY_NAME = {row.name: row for row in ROWS}
# One to a byte in NumPy and in what plugins exchange with the host.
SUB_BYTE = frozenset(row.name for row in ROWS if row.bits < 8)
_COMPLEX = 5


def halves(row: Row) -> str | None:
    """The type of NumPy's own of the same kind and half the width."""
    for other in ROWS:
        if other.npy and (other.code, 2 * other.bits) == (row.code, row.bits):
            return other.name
    return None


def is_wide(row: Row) -> bool:
    """Numbers, or parts of complex ones, of 64 bits."""
    return row.bits == (128 if row.code == _COMPLEX else 64) and bool(row.npy)
