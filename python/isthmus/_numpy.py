# SPDX-License-Identifier: Apache-2.0
"""NumPy as a producer and a consumer. Loaded only when NumPy is."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _core, _errors, _watched
from ._capsule import unread
from ._dtypes import BY_NAME, ROWS, SUB_BYTE
from ._sources import BYTE_ORDER, FROM_SOURCE, ITEM_UNALIGNED, Prepared

GRANT = FROM_SOURCE
# Types that the framework would turn into smaller ones: none.
NARROW: dict[str, str] = {}
# Types that it takes by a copy of its own: none.
PUT: frozenset[str] = frozenset()

# Its capsules always say how they pack.
PACKING = None

_NATIVE = tuple(row.name for row in ROWS if row.npy)
# Types of ml_dtypes with whole bytes: NumPy's DLPack refuses them, so that
# they cross as integers of their width.
_ML = {row.name: f"uint{row.bits}" for row in ROWS
       if not row.npy and row.bits >= 8}
# Types of ml_dtypes that NumPy stores one element to a byte.
_PADDED = SUB_BYTE

_CONSUMER = _core.Consumer(
    (*_NATIVE, *_ML), negative=True, gaps=True, overlap=True, alignment=1,
    honours_read_only=True, legacy=False)
_PADDED_CONSUMER = _core.Consumer(
    tuple(_PADDED), negative=True, gaps=True, overlap=True, alignment=1,
    honours_read_only=True, legacy=False, packing="padded")


def _samples() -> tuple[tuple[Any, int, tuple[int, ...], tuple[int, ...], int],
                        ...]:
    """Arrays and what they say of themselves."""
    whole = np.arange(24, dtype="float32").reshape(2, 3, 4)
    fixed = np.zeros((), "int64")
    fixed.flags.writeable = False
    arrays = (whole, whole.T[::-1], whole[1:, ::2], fixed,
              np.zeros((0, 3), "bool"))
    return tuple((a, int(a.__array_interface__["data"][0]), a.shape, a.strides,
                  int(a.flags.num)) for a in arrays)


# Plain arrays are read in C without a call, if this NumPy's arrays are as is
# known there. NumPy has one object for each of its own native dtypes.
FAST = _core.know_numpy(
    np.ndarray,
    tuple((np.dtype(c), np.dtype(c).name) for c in "fdlqibBhHILQeFD?"
          if np.dtype(c).name in BY_NAME), _samples())

_core.take_for("numpy", _CONSUMER, _NATIVE, np.from_dlpack)


def plain_check(cls: type) -> Callable[[Any], Any] | None:
    return None if cls is np.ndarray else _never


def _never(x: Any) -> None:
    return None


def prepare(
    x: Any, *, copy: bool | None, detach: bool, resolve: bool,
    dry: bool = False, progress: _watched.Progress | None = None,
) -> Prepared:
    """What is imported instead of an array that NumPy's own DLPack refuses,
    or whose meaning is more than its memory."""
    if isinstance(x, np.ma.MaskedArray):
        _errors.refuse(
            _errors.PRODUCER,
            "a masked array could not cross: its mask has no place in a "
            "tensor; needs x.filled(value)")
    array = x if type(x) is np.ndarray else np.asarray(x)
    dtype = array.dtype
    if dtype.type.__module__.partition(".")[0] == "ml_dtypes":
        return _prepare_ml(array, copy, dry, progress)
    if dtype.kind not in "biufc" or dtype.itemsize > 8 * (
            2 if dtype.kind == "c" else 1):
        _errors.refuse(
            _errors.DTYPE,
            f"a NumPy array of {_kind(dtype)} could not cross: DLPack has no "
            "such element type; needs numbers or bools of at most 64 bits")
    if not dtype.isnative:
        native = dtype.newbyteorder("=")
        return _copied(array, native, BYTE_ORDER, copy, dry,
                       f"its byte order is {dtype.str!r}", progress)
    if _items_misaligned(array):
        return _copied(array, dtype, ITEM_UNALIGNED, copy, dry,
                       "its items are not aligned to their size", progress)
    return Prepared(array)


def _kind(dtype: np.dtype[Any]) -> str:
    kinds = {"O": "objects", "U": "strings", "S": "bytes", "M": "datetimes",
             "m": "timedeltas", "V": "structured or void items"}
    return kinds.get(dtype.kind, str(dtype))


def _items_misaligned(array: np.ndarray[Any, Any]) -> bool:
    size = array.dtype.itemsize
    strides = (s for s, n in zip(array.strides, array.shape) if n > 1)
    return not array.flags.aligned or any(s % size for s in strides)


def _copied(
    array: np.ndarray[Any, Any], dtype: np.dtype[Any], reason: int,
    copy: bool | None, dry: bool, why: str,
    progress: _watched.Progress | None,
) -> Prepared:
    """The array's values in fresh aligned memory."""
    if copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            f"a NumPy array could not cross without a copy: {why}; needs "
            "copy=None")
    if dry:
        return Prepared(
            unread(dtype.name, array.shape, dtype.name in _PADDED), reason)
    target = empty(array.shape, dtype.name, 64)
    _watched.copy(target, array, progress)
    return Prepared(target, reason)


def _prepare_ml(
    array: np.ndarray[Any, Any], copy: bool | None, dry: bool,
    progress: _watched.Progress | None,
) -> Prepared:
    name = array.dtype.name
    if name not in _ML and name not in _PADDED:
        _errors.refuse(
            _errors.DTYPE,
            f"a NumPy array of {name} could not cross: DLPack has no such "
            "element type; needs one of DLPack 1.3")
    if _items_misaligned(array):
        made = _copied(array, array.dtype, ITEM_UNALIGNED, copy, dry,
                       "its items are not aligned to their size", progress)
        if dry:
            return made
        again = _prepare_ml(made.value, copy, dry, None)
        return again._replace(reason=made.reason)
    size = array.dtype.itemsize
    tensor = _core.wrap(
        array, array.__array_interface__["data"][0], name, array.shape,
        tuple(s // size for s in array.strides), not array.flags.writeable,
        name in _PADDED)
    return Prepared(tensor)


def consumer(tensor: _core.Tensor) -> tuple[_core.Consumer, str | None]:
    """The capability record, and the dtype that a capsule says instead."""
    dtype = tensor.dtype.name
    if dtype in _PADDED:
        _ml_type(dtype)
        return _PADDED_CONSUMER, "uint8"
    if dtype in _ML:
        _ml_type(dtype)
    return _CONSUMER, _ML.get(dtype)


def _ml_type(name: str) -> Any:
    try:
        import ml_dtypes
    except ImportError:
        _errors.refuse(
            _errors.NO_FRAMEWORK,
            f"NumPy could not be given {name}: ml_dtypes, which has that "
            "type, is not installed; needs pip install ml_dtypes")
    found = getattr(ml_dtypes, name, None)
    if found is None:
        _errors.refuse(
            _errors.TARGET_DTYPE,
            f"NumPy could not be given {name}: this ml_dtypes has no such "
            "type; needs a newer one")
    return found


def accept(capsule: Any, dtype: str, device: Any) -> Any:
    """The array of a capsule."""
    array = np.from_dlpack(_core.Once(capsule))
    if dtype in _ML or dtype in _PADDED:
        return array.view(_ml_type(dtype))
    return array


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def empty(shape: tuple[int, ...], dtype: str, align: int) -> Any:
    """Zeros, aligned, in memory of isthmus."""
    tensor = _core.empty(tuple(shape), dtype, align)
    dtype = tensor.dtype.name  # of torch's float4_e2m1fn_x2: of each value
    if dtype in _PADDED:
        _ml_type(dtype)
        tensor = _core.empty(tensor.shape, "uint8", align)
    into, bits = consumer(tensor)
    capsule, _ = _core.export(tensor, into, (None, "auto", "alias"), bits)
    return accept(capsule, dtype, None)


def narrowed(
    tensor: _core.Tensor, dtype: str, progress: _watched.Progress | None,
) -> Any:
    """The values of a host tensor as another type, in aligned memory: NumPy's
    conversion, which wraps integers and rounds floats."""
    into, bits = consumer(tensor)
    capsule, _ = _core.export(tensor, into, (None, "auto", "alias"), bits)
    source = accept(capsule, str(tensor.dtype), None)
    target = empty(source.shape, dtype, 64)
    with np.errstate(over="ignore"):
        _watched.copy(target, source, progress, "unsafe")
    return target
