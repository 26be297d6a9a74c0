# SPDX-License-Identifier: Apache-2.0
"""isthmus.astype: values in another floating-point dtype, on request only."""

from __future__ import annotations

from typing import Any, Callable

from . import _core, _errors, _sources


def dtype_name(dtype: Any) -> str:
    """DLPack's name of a dtype: of a str, a dtype of isthmus, NumPy, ml_dtypes,
    jax or torch, or a scalar type of theirs."""
    if isinstance(dtype, str):
        return dtype
    if type(dtype).__module__ == "torch":  # torch.bfloat16
        return str(dtype).rpartition(".")[2]
    # jax.numpy.bfloat16 is neither a dtype nor a type, but has one.
    inner = getattr(dtype, "dtype", None)
    for candidate in (dtype, inner):
        name = getattr(candidate, "name", None)
        if isinstance(name, str):
            return name
    module = getattr(dtype, "__module__", "")
    if isinstance(dtype, type) and module != "builtins":
        return dtype.__name__  # numpy.float32, ml_dtypes.bfloat16
    raise _errors.make(
        _errors.ARGUMENT,
        f"a dtype could not be found: {dtype!r:.80} names none; "
        "needs a name such as \"bfloat16\", or a dtype of NumPy, ml_dtypes, "
        "jax or torch")


def astype(
    x: Any, dtype: Any, *, saturate: bool = False, padded: bool = False,
    progress: Callable[[int, int], bool | None] | None = None,
    receipt: bool = False,
) -> Any:
    """The values of ``x`` in another floating-point dtype, each rounded once,
    to nearest, ties to even, with the bits of ml_dtypes: a Tensor of its own
    memory on the host, or with ``receipt=True`` the pair of it and a Receipt.

    With ``saturate`` what is too large, and infinity, becomes the largest
    finite number. A result below 8 bits is packed, or with ``padded`` has one
    element to a byte. ``progress`` as for ``to``."""
    name = dtype_name(dtype)
    label: str | None
    if _sources.is_capsule(x):
        tensor, label, reason = x, "capsule", 0
    else:
        tensor, label, reason = _sources.take(
            x, copy=None, detach=False, resolve=True, progress=progress)
    result, paper = _core.convert(tensor, name, saturate, padded, progress)
    nbytes = 0 if reason == 0 else tensor.nbytes
    _core.receipt_amend(paper, label, None, reason, nbytes)
    return (result, paper) if receipt else result
