# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a producer and a consumer. Loaded only when PyTorch is."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.utils.dlpack

from . import _core, _errors
from ._capsule import unread
from ._dtypes import ROWS
from ._sources import PAIRS_APART, RESOLVED, WRITABLE, Prepared

GRANT = WRITABLE
# Types that the framework would turn into smaller ones: none.
NARROW: dict[str, str] = {}
# Types that it takes by a copy of its own: none.
PUT: frozenset[str] = frozenset()

# Its capsules always say how they pack.
PACKING = None

_HERE = {row.name: getattr(torch, row.torch) for row in ROWS
         if row.torch and hasattr(torch, row.torch)}
# What a capsule of torch says is true of these; int1 to int7, uint1 to uint7
# are exported as 8-bit integers.
_DTYPES = frozenset(_HERE.values())
# The ones of which torch counts two elements as one (pytorch/pytorch#148791).
_PAIRS = frozenset(_HERE[row.name] for row in ROWS
                   if row.torch_lanes == 2 and row.name in _HERE)
_PLAIN = _DTYPES - _PAIRS

# torch aborts on negative strides (pytorch/pytorch#188023) and has no
# read-only tensors.
_CONSUMER = _core.Consumer(
    tuple(_HERE), negative=False, gaps=True, overlap=True, alignment=1,
    honours_read_only=False, legacy=False, packing="pairs")

_strided = torch.strided
_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
_data: Callable[[Any], Any] = vars(torch._C.TensorBase)["data"].__get__
_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_no_dispatch = getattr(torch._C, "_disabled_torch_dispatch_impl", None)
_functorch = getattr(torch._C, "_functorch", None)
_is_wrapped: Callable[[Any], bool] = getattr(
    _functorch, "is_functorch_wrapped_tensor", lambda x: False)


# Plain tensors are read in C without a call, if this torch has the C exchange
# API with that part.
FAST = _core.know_torch(
    _Tensor, _Parameter, torch.UntypedStorage,
    tuple((dtype, name) for name, dtype in _HERE.items() if dtype in _PLAIN))

_core.take_for(
    "torch", _CONSUMER,
    tuple(name for name, dtype in _HERE.items() if dtype in _PLAIN), None)


def plain_check(cls: type) -> Callable[[Any], Any]:
    return _plain if cls in (_Tensor, _Parameter) else _never


def _never(x: Any) -> None:
    return None


def _plain(x: Any) -> Any:
    """What to import of x, when its memory is its values and a capsule says
    all of it; None otherwise."""
    if (x.requires_grad or x.layout is not _strided or x.is_neg()
            or x.is_conj() or x.dtype not in _PLAIN or not x.is_cpu
            or x.is_nested or _is_wrapped(x)
            or x.untyped_storage().nbytes() < _needed(x)):
        return None
    return _own(x)


def _own(x: Any) -> Any:
    """A handle of the crossing's own on x's memory. torch's capsule holds the
    handle that it was made of and not the memory, which ``x.data = y`` and
    ``x.set_(y)`` let go of. Not x.detach(): torch.func traces that, and it
    takes longer. Modes that rewrite operations would rewrite this too."""
    if not _modes():
        return _data(x)
    with torch._C._DisableTorchDispatch():
        return _data(x)


def _needed(x: Any) -> int:
    """The bytes of storage up to the end of the last element. A storage may
    be resized below them by hand, as sharded training does."""
    size: int = x.itemsize
    start: int = x.storage_offset() * size
    if x.is_contiguous():
        needed: int = x.nbytes
        return start + needed if needed else 0
    extent: int = sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
    return start + (1 + extent) * size if x.numel() else 0


def _check(x: Any) -> None:
    """Refuses what has no memory of its own, or more than a capsule says."""
    name = type(x).__name__
    dispatch = getattr(type(x), "__torch_dispatch__", None)
    if type(x) not in (_Tensor, _Parameter) and (
            dispatch is not None and dispatch is not _no_dispatch):
        _errors.refuse(
            _errors.PRODUCER,
            f"a torch {name} could not cross: it stands for a tensor and has "
            "no memory of its own; needs a plain tensor")
    if _is_wrapped(x):
        _errors.refuse(
            _errors.PRODUCER,
            "a torch tensor could not cross: it is traced by vmap or grad; "
            "needs a call outside of it")
    if x.is_meta:
        _errors.refuse(
            _errors.PRODUCER,
            "a torch tensor could not cross: it is on the meta device and has "
            "no values; needs a tensor on a real device")
    if x.is_nested or x.layout is not _strided:
        what = "nested" if x.is_nested else str(x.layout)
        _errors.refuse(
            _errors.PRODUCER,
            f"a torch tensor could not cross: its layout is {what}; needs a "
            "dense one, such as x.to_dense()")
    if x.is_quantized:
        _errors.refuse(
            _errors.DTYPE,
            "a torch tensor could not cross: it is quantised, and its scale "
            "has no place in a tensor; needs x.dequantize() or x.int_repr()")
    if x.untyped_storage().nbytes() < _needed(x):
        _errors.refuse(
            _errors.PRODUCER,
            "a torch tensor could not cross: its storage was resized to "
            f"{x.untyped_storage().nbytes()} bytes; needs {_needed(x)}, for "
            "its elements to be in it")
    if x.dtype not in _DTYPES:
        _errors.refuse(
            _errors.DTYPE,
            f"a torch tensor could not cross: torch exports {x.dtype} as "
            "another type, and how its bits lie is not known; needs "
            "x.view(torch.uint8)")


def prepare(
    x: Any, *, copy: bool | None, detach: bool, resolve: bool,
    dry: bool = False,
    progress: Callable[[int, int], bool | None] | None = None,
) -> Prepared:
    """A tensor whose memory is its values, from one that is not plain."""
    with torch._C.DisableTorchFunctionSubclass():
        _check(x)
        if x.requires_grad:
            if not detach:
                _errors.refuse(
                    _errors.REQUIRES_GRAD,
                    "a torch tensor could not cross: it requires grad, which "
                    "ends at the crossing; needs detach=True or x.detach()",
                    hint="isthmus.to(x, target, detach=True) shares its "
                         "memory; so does x.detach()")
        x = _own(x)
        if x.dtype in _PAIRS:
            return _pairs(x, copy, dry)
        bit = "conjugate" if x.is_conj() else "negative"
        if not (x.is_conj() or x.is_neg()):
            return Prepared(x)
        if not resolve:
            _errors.refuse(
                _errors.PRODUCER,
                f"a torch tensor could not cross: its {bit} bit is set, which "
                "no capsule carries; needs resolve=True")
        if copy is False:
            _errors.refuse(
                _errors.COPY_NEEDED,
                f"a torch tensor could not cross without a copy: its {bit} "
                "bit is set, which no capsule carries; needs copy=None")
        if dry:
            name = str(x.dtype).rpartition(".")[2]
            return Prepared(unread(name, tuple(x.shape)), RESOLVED)
        dense = torch.empty(x.shape, dtype=x.dtype)
        return Prepared(dense.copy_(x), RESOLVED)


def _pairs(x: Any, copy: bool | None, dry: bool) -> Prepared:
    """Pairs that lie along the last dimension, from any."""
    if x.dim() == 0:
        _errors.refuse(
            _errors.LANES,
            f"a torch tensor could not cross: its dtype is {x.dtype} with 2 "
            "lanes in no dimension; needs x.reshape(1), to count its two "
            "values")
    if x.shape[-1] <= 1 or x.stride(-1) == 1:
        return Prepared(x)
    if copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            "a torch tensor could not cross without a copy: its pairs do not "
            "lie along the last dimension; needs copy=None")
    if dry:
        name = next(name for name, it in _HERE.items() if it == x.dtype)
        shape = (*x.shape[:-1], 2 * x.shape[-1])
        return Prepared(unread(name, shape), PAIRS_APART)
    dense = torch.empty(x.shape, dtype=x.dtype)
    dense.view(torch.uint8).copy_(x.view(torch.uint8))
    return Prepared(dense, PAIRS_APART)


def consumer(tensor: _core.Tensor) -> tuple[_core.Consumer, str | None]:
    return _CONSUMER, None


def accept(capsule: Any, dtype: str, device: Any) -> Any:
    return torch.utils.dlpack.from_dlpack(capsule)


def is_array(x: Any) -> bool:
    return isinstance(x, torch.Tensor)


def is_device(x: Any) -> bool:
    return isinstance(x, torch.device)


def check_device(device: Any) -> None:
    if device.type != "cpu":
        _errors.not_in_version(
            f"a torch tensor on {device}", "torch.device(\"cpu\")")


def empty(shape: tuple[int, ...], dtype: str, align: int) -> Any:
    tensor = _core.empty(tuple(shape), dtype, align)
    capsule, _ = _core.export(
        tensor, _CONSUMER, (None, "auto", "alias"), None)
    return accept(capsule, dtype, None)
