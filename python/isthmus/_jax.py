# SPDX-License-Identifier: Apache-2.0
"""JAX on plain CPU devices as a producer and a consumer. Loaded only when JAX
is."""

from __future__ import annotations

import importlib
from typing import Any, Callable

import jax

from . import _core, _errors
from ._capsule import Once
from ._sources import IMMUTABLE, Prepared

GRANT = IMMUTABLE

# With 64-bit types off, jax turns these into those without a word.
NARROW = {
    "int64": "int32", "uint64": "uint32", "float64": "float32",
    "complex128": "complex64",
}
_NAMES = (
    "bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16",
    "bfloat16", "float32", "complex64", *NARROW, "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
)

# XLA's CPU client views memory at multiples of 64 bytes and dense layouts
# only (openxla/xla#18611, jax-ml/jax#8082); jax reads the kind of capsule
# without a version, and never writes its arrays.
_CONSUMER = _core.Consumer(
    _NAMES, negative=False, gaps=False, overlap=False, alignment=64,
    honours_read_only=True, legacy=True)


def plain_check(cls: type) -> Callable[[Any], Any] | None:
    return None


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


def prepare(
    x: Any, *, copy: bool | None, detach: bool, resolve: bool,
    dry: bool = False,
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
    if str(x.dtype) not in _NAMES:
        _errors.refuse(
            _errors.DTYPE,
            f"a jax array of {x.dtype} could not cross: jax does not export "
            "that type; needs x.astype of one that it does")
    return Prepared(x)


def narrows(dtype: str) -> bool:
    """jax would turn this type into a smaller one here and now."""
    return str(jax.dtypes.canonicalize_dtype(dtype)) != dtype


def consumer(tensor: _core.Tensor) -> tuple[_core.Consumer, str | None]:
    return _CONSUMER, None


def accept(capsule: Any, dtype: str, device: Any) -> Any:
    if device is None:
        device = jax.local_devices(backend="cpu")[0]
    if _entry is not None:
        return _entry(capsule, device, None, False)
    return jax.dlpack.from_dlpack(Once(capsule), device=device)


def is_array(x: Any) -> bool:
    return isinstance(x, jax.Array)


def is_device(x: Any) -> bool:
    return isinstance(x, jax.Device)


def check_device(device: Any) -> None:
    if device.platform != "cpu":
        _errors.not_in_version(
            f"a jax array on platform {device.platform!r}",
            "a device of jax.devices(\"cpu\")")
