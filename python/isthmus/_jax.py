# SPDX-License-Identifier: Apache-2.0
"""JAX on plain CPU devices as a producer and a consumer. Loaded only when JAX
is."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import Any, Callable

import jax
import ml_dtypes
import numpy as np

from . import _core, _errors, _numpy
from ._capsule import unread
from ._dtypes import ROWS, SUB_BYTE, halves, is_wide
from ._sources import IMMUTABLE, UNCARRIED, Prepared

GRANT = IMMUTABLE

# Its capsules have no version, and pack (seen with jax 0.10 and fp4).
PACKING = "packed"

# With 64-bit types off, jax turns these into those without a word.
NARROW = {row.name: half for row in ROWS if row.jax and is_wide(row)
          for half in [halves(row)] if half}
_CARRIED = tuple(row.name for row in ROWS if row.jax and row.bits >= 8)
# jax has these, and no capsule that its own import takes: they go through
# NumPy, which is a copy.
PUT = frozenset(row.name for row in ROWS if row.jax and row.bits < 8)
# jax says something else in a capsule than the array is, or fails.
_UNSAID = frozenset(np.dtype(getattr(ml_dtypes, name)) for name in SUB_BYTE
                    if name != "float4_e2m1fn" and hasattr(ml_dtypes, name))

# XLA's CPU client views memory at multiples of 64 bytes and dense layouts
# only (openxla/xla#18611, jax-ml/jax#8082); jax reads the kind of capsule
# without a version, and never writes its arrays.
_CONSUMER = _core.Consumer(
    (*_CARRIED, *PUT), negative=False, gaps=False, overlap=False, alignment=64,
    honours_read_only=True, legacy=True)


def plain_check(cls: type) -> Callable[[Any], Any] | None:
    return _plain


def _plain(x: Any) -> Any:
    """What to import of x: itself, unless its capsule would not be true."""
    return None if getattr(x, "dtype", None) in _UNSAID else x


def _import_entry() -> Callable[..., Any] | None:
    """jaxlib's own import, in front of which the public one costs eight times
    as much; None where this jaxlib has it elsewhere."""
    try:
        private = importlib.import_module("jax._src.lib")
    except ImportError:
        return None
    entry: Callable[..., Any] | None = getattr(
        getattr(private, "_jax", None), "dlpack_managed_tensor_to_buffer",
        None)
    return entry


_entry = _import_entry()


def _refine_entry() -> Callable[[Any], Any] | None:
    """jax's refinement of a module whose arguments have static shapes; None
    where this jax has it elsewhere."""
    try:
        private = importlib.import_module("jax._src.interpreters.mlir")
    except ImportError:
        return None
    return getattr(private, "refine_polymorphic_shapes", None)


_refine = _refine_entry()


def refined(module: Any) -> str:
    """The text of a lowered module, its dynamic shapes worked out."""
    if _refine is None:
        _errors.refuse(
            _errors.ARTIFACT,
            "a jax.export artifact could not be used: its shapes or its "
            f"platform are open, and jax {jax.__version__} has no shape "
            "refinement where isthmus knows it; needs an export with static "
            "shapes for one platform")
    return str(_refine(module))


def wide_types() -> AbstractContextManager[Any]:
    """64-bit types as they are, while jax traces."""
    here = getattr(jax, "enable_x64", None)
    if here is None:
        here = importlib.import_module("jax.experimental").enable_x64
    made: AbstractContextManager[Any] = here(True)
    return made


def prepare(
    x: Any, *, copy: bool | None, detach: bool, resolve: bool,
    dry: bool = False,
    progress: Callable[[int, int], bool | None] | None = None,
) -> Prepared:
    """Called when jax's own export failed: says why."""
    if isinstance(x, jax.core.Tracer):
        _errors.refuse(
            _errors.NOT_A_TENSOR,
            "a jax tracer could not cross: it has no values while jit, grad "
            "or vmap trace; needs a concrete array, or jax.pure_callback")
    if not isinstance(x, jax.Array):
        return Prepared(x)
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        _errors.refuse(
            _errors.DTYPE,
            "a jax array of PRNG keys could not cross: DLPack has no such "
            "element type; needs jax.random.key_data(x)")
    if x.is_deleted():
        _errors.refuse(
            _errors.DELETED,
            "a jax array could not cross: it was deleted or donated; needs "
            "one that is alive")
    devices = x.devices()
    if len(devices) != 1:
        _errors.not_in_version(
            f"a jax array over {len(devices)} devices",
            "one device, such as x.addressable_data(0)")
    device = next(iter(devices))
    if device.platform != "cpu":
        _errors.not_in_version(
            f"a jax array on platform {device.platform!r}",
            "jax.device_put(x, jax.devices(\"cpu\")[0])")
    name = str(x.dtype)
    if name in PUT and x.dtype in _UNSAID:
        return _through_numpy(x, name, copy, dry)
    if name not in _CARRIED and name not in PUT:
        _errors.refuse(
            _errors.DTYPE,
            f"a jax array of {x.dtype} could not cross: jax does not export "
            "that type; needs x.astype of one that it does")
    return Prepared(x)


def _through_numpy(
    x: Any, name: str, copy: bool | None, dry: bool,
) -> Prepared:
    if copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            f"a jax array of {name} could not cross without a copy: jax has "
            "no capsule for it; needs copy=None")
    if dry:
        return Prepared(unread(name, x.shape, True), UNCARRIED)
    made = _numpy.prepare(
        np.array(x), copy=copy, detach=False, resolve=True)
    return made._replace(reason=UNCARRIED)


def narrows(dtype: str) -> bool:
    """jax would turn this type into a smaller one here and now."""
    return str(jax.dtypes.canonicalize_dtype(dtype)) != dtype


def consumer(tensor: _core.Tensor) -> tuple[_core.Consumer, str | None]:
    if tensor.dtype.name in PUT:
        return _numpy.consumer(tensor)
    return _CONSUMER, None


def accept(capsule: Any, dtype: str, device: Any) -> Any:
    if device is None:
        device = jax.local_devices(backend="cpu")[0]
    if dtype in PUT:
        array = _numpy.accept(capsule, dtype, None)
        # The source may change, or go, as soon as this returns.
        return jax.device_put(array, device).block_until_ready()
    if _entry is not None:
        return _entry(capsule, device, None, False)
    return jax.dlpack.from_dlpack(_core.Once(capsule), device=device)


def is_array(x: Any) -> bool:
    return isinstance(x, jax.Array)


def is_device(x: Any) -> bool:
    return isinstance(x, jax.Device)


def check_device(device: Any) -> None:
    if device.platform != "cpu":
        _errors.not_in_version(
            f"a jax array on platform {device.platform!r}",
            "a device of jax.devices(\"cpu\")")
