# SPDX-License-Identifier: Apache-2.0
"""How a Tensor looks: its text, and its NumPy array."""

from __future__ import annotations

import math
from typing import Any

from . import _core, _errors

# Tensors of more elements do not show them.
_SHOWN = 64


def text(tensor: _core.Tensor) -> str:
    try:
        shape, dtype, device = tensor.shape, tensor.dtype, tensor.device
    except _errors.Error:
        return "Tensor(closed)"
    facts = f"shape={shape}, dtype={dtype}, device={device.backend.name}"
    if device.index:
        facts += f"#{device.index}"
    if tensor.read_only:
        facts += ", read_only=True"
    values = _values(tensor) if math.prod(shape) <= _SHOWN else None
    return f"Tensor({facts})" if values is None else (
        f"Tensor({values}, {facts})")


def _values(tensor: _core.Tensor) -> Any:
    """Nested lists, or None where Python has no words for the elements."""
    host = tensor
    if tensor.device != (1, 0) or tensor.address is None:
        host = _core.from_dlpack(tensor, device=(1, 0))
    try:
        return memoryview(host).tolist()
    except (BufferError, NotImplementedError):
        return None


def array(tensor: _core.Tensor, dtype: Any, copy: bool | None) -> Any:
    """Tensor.__array__: as isthmus.to(tensor, "numpy"), then to dtype."""
    from ._exchange import to
    made = to(tensor, "numpy", copy=copy)
    if dtype is None or made.dtype == dtype:
        return made
    if copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            f"{made.dtype} could not become {dtype} without a copy; needs "
            "copy=None")
    return made.astype(dtype)
