# SPDX-License-Identifier: Apache-2.0
"""isthmus.to, plan and to_tree: every pair goes through one route of the C
library and gets its receipt; the adapters only turn types."""

from __future__ import annotations

import copy as copy_module
import importlib
import math
import sys
from types import ModuleType
from typing import Any, Callable, NamedTuple

from . import _core, _errors, _sources
from ._capsule import unread
from ._convert import dtype_name

_LATER = ("tensorflow", "cupy", "paddle", "mlx", "tvm_ffi")
_ADAPTERS = ("numpy", "torch", "jax")

# How a refusal before the route is said in a receipt (reason.def).
_REASONS = {
    _errors.REQUIRES_GRAD: 45, _errors.NARROWING: 46,
    _errors.NOT_A_TENSOR: 47, _errors.NOT_IN_VERSION: 48,
    _errors.COPY_NEEDED: 40, _errors.TARGET_DTYPE: 42,
}
_SOURCE_REFUSED = 49


class _Target(NamedTuple):
    """A framework (adapter set) or a device of a backend."""

    adapter: Any
    device: Any
    label: str | None


class _Wish(NamedTuple):
    copy: bool | None
    detach: bool
    resolve: bool
    read_only: str
    mutable_source: str
    narrow: bool
    progress: Callable[[int, int], bool | None] | None = None


def _adapter(name: str) -> ModuleType:
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise _errors.make(
            _errors.NO_FRAMEWORK,
            f"target {name!r} could not be used: it is not installed; needs "
            f"pip install {name}") from error
    module = _sources.module_of(name)
    assert module is not None
    return module


_targets: dict[str, _Target] = {}


def _find_target(target: Any) -> _Target:
    if isinstance(target, str):
        if target in _targets:
            return _targets[target]
        if target in _ADAPTERS:
            found = _Target(_adapter(target), None, target)
            _targets[target] = found
            return found
        if target in _LATER:
            _errors.not_in_version(
                f"target {target!r}", "\"numpy\", \"torch\" or \"jax\"")
    elif isinstance(target, (_core.Device, _core.Backend, tuple)):
        return _Target(None, target, None)
    else:
        for name in ("torch", "jax"):
            module = sys.modules.get(name) and _sources.module_of(name)
            if module and module.is_device(target):
                module.check_device(target)
                return _Target(module, target, name)
    raise _errors.make(
        _errors.ARGUMENT,
        f"a target could not be found: {target!r:.80}; needs \"numpy\", "
        "\"torch\", \"jax\", or a device or backend of isthmus, torch or jax")


def _puts(source: _sources.Source, target: _Target) -> bool:
    """The target takes that type by a copy of its own, whatever the route."""
    return (target.adapter is not None and bool(target.adapter.PUT)
            and source.tensor.dtype.name in target.adapter.PUT)


def _copy_of_route(
    source: _sources.Source, target: _Target, wish: _Wish,
) -> bool | None:
    """What is left of the wish to copy for the route: an adapter's copy
    before it or after it is a copy too."""
    if not _puts(source, target):
        return None if source.reason and wish.copy else wish.copy
    if wish.copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            f"{source.tensor.dtype} could not cross to {target.label} without "
            "a copy: its capsules do not carry that type; needs copy=None")
    return None


def _amend(source: _sources.Source, target: _Target, receipt: Any) -> None:
    """Adds an adapter's own copies, before the route and after it."""
    _core.receipt_amend(receipt, source.label, target.label, source.reason,
                        source.tensor.nbytes if source.reason else 0)
    if _puts(source, target):
        count = math.prod(source.tensor.shape)
        bits = source.tensor.dtype.bits
        _core.receipt_amend(receipt, source.label, target.label,
                            _sources.UNCARRIED, (count * bits + 7) // 8)


def _plan(source: _sources.Source, target: _Target, wish: _Wish) -> Any:
    copy = _copy_of_route(source, target, wish)
    how = (copy, wish.read_only, wish.mutable_source)
    into = target.device
    if target.adapter is not None:
        into, _ = target.adapter.consumer(source.tensor)
    receipt = _core.plan(source.tensor, into, how)
    _amend(source, target, receipt)
    return receipt


def _refusal(error: _errors.Error, label: str | None, target: Any) -> Any:
    name = target.label if isinstance(target, _Target) else (
        _sources.plain_text(str(target)))
    return _core.refusal(
        error.code, _REASONS.get(error.code, _SOURCE_REFUSED), label or "",
        name or "")


def _narrow(
    source: _sources.Source, target: _Target, wish: _Wish, dry: bool,
) -> _sources.Source:
    """Refuses what the target would narrow, or narrows it when asked to."""
    adapter = target.adapter
    if adapter is None or not adapter.NARROW:
        return source
    dtype = source.tensor.dtype.name
    if dtype not in adapter.NARROW or not adapter.narrows(dtype):
        return source
    small = adapter.NARROW[dtype]
    if not wish.narrow:
        _errors.refuse(
            _errors.NARROWING,
            f"{dtype} could not cross to {target.label}: its 64-bit types "
            f"are off, so that it would narrow the values to {small}; needs "
            "jax.config.update(\"jax_enable_x64\", True) or narrow=True")
    if wish.copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            f"{dtype} could not cross to {target.label} without a copy: it "
            f"is narrowed to {small}; needs copy=None")
    if dry:
        tensor = unread(small, source.tensor.shape)
    else:
        from . import _numpy
        tensor = _core.import_host(
            _numpy.narrowed(source.tensor, small, wish.progress),
            _sources.WRITABLE)
    return source._replace(tensor=tensor, reason=_sources.NARROWED)


def plan(
    x: Any, target: Any, *, copy: bool | None = None, detach: bool = False,
    resolve: bool = True, read_only: str = "auto",
    mutable_source: str = "alias", narrow: bool = False,
    progress: Callable[[int, int], bool | None] | None = None,
) -> _core.Receipt:
    """How ``to`` would go, and why; nothing moves, no capsule is consumed. A
    refusal is an answer: its route is "refuse". ``progress`` is taken, so that
    the wishes of ``to`` fit, and never called; ``out`` is always one copy."""
    wish = _Wish(copy, detach, resolve, read_only, mutable_source, narrow)
    found: Any = target
    label = _sources.framework_of(type(x)) or None
    try:
        found = _find_target(target)
        source = _sources.take(
            x, copy=copy, detach=detach, resolve=resolve, dry=True)
        source = _narrow(source, found, wish, True)
        receipt: _core.Receipt = _plan(source, found, wish)
        return receipt
    except _errors.Error as error:
        if not isinstance(error, BufferError):
            raise
        refused: _core.Receipt = _refusal(error, label, found)
        return refused


def _check_capsule(x: Any, target: _Target, wish: _Wish) -> None:
    """A capsule is consumed only if it will cross, or if nothing of it but its
    version can be read: from_dlpack then has it deleted, and says so."""
    try:
        source = _sources.take(x, copy=wish.copy, detach=wish.detach,
                               resolve=wish.resolve, dry=True)
    except _errors.Error as error:
        if getattr(error, "code", 0) == _errors.DLPACK_VERSION:
            _core.from_dlpack(x)
        raise
    source = _narrow(source, target, wish, True)
    receipt = _plan(source, target, wish)
    if receipt.route == "refuse":
        why = "; ".join(text for _, text in receipt.reasons)
        _errors.refuse(
            receipt.code,
            f"a capsule could not cross to {receipt.target}: {why}; needs "
            "other wishes (the capsule is not consumed)")


def _give(
    source: _sources.Source, target: _Target, wish: _Wish,
) -> tuple[Any, Any]:
    copy = _copy_of_route(source, target, wish)
    how = (copy, wish.read_only, wish.mutable_source, source.label or None,
           target.label, wish.progress)
    if target.adapter is None:
        result, receipt = _core.move(source.tensor, target.device, how)
    else:
        dtype = source.tensor.dtype.name
        into, bits = target.adapter.consumer(source.tensor)
        capsule, receipt = _core.export(source.tensor, into, how, bits)
        result = _accept(target, capsule, dtype)
    _amend(source, target, receipt)
    return result, receipt


def _accept(target: _Target, capsule: Any, dtype: str) -> Any:
    try:
        device = target.device
        return target.adapter.accept(capsule, dtype, device)
    except (_errors.Error, MemoryError):
        raise
    except Exception as error:
        raise _errors.make(
            _errors.CONSUMER,
            f"{target.label} did not take the tensor: "
            f"{type(error).__name__}: {str(error)[:200]}; "
            "needs a tensor that its own import takes") from error


def _fill(x: Any, target: _Target, wish: _Wish, out: Any) -> Any:
    """Copies into an array that is there already."""
    adapter = target.adapter
    if adapter is None or not adapter.is_array(out):
        raise _errors.make(
            _errors.ARGUMENT,
            f"out could not be filled: it is a {type(out).__name__}; needs an "
            f"array of the target {target.label or 'framework'}")
    if wish.copy is False:
        _errors.refuse(
            _errors.COPY_NEEDED,
            "out could not be filled without a copy; needs copy=None")
    into = _sources.take(out, copy=False, detach=False, resolve=False).tensor
    if _sources.is_capsule(x):
        receipt = _core.copy_into(x, into, wish.progress)
        _core.receipt_amend(receipt, "capsule", target.label, 0, 0)
        return receipt
    source = _sources.take(
        x, copy=wish.copy, detach=wish.detach, resolve=wish.resolve,
        progress=wish.progress)
    receipt = _core.copy_into(source.tensor, into, wish.progress)
    _core.receipt_amend(receipt, source.label, target.label, source.reason,
                        source.tensor.nbytes)
    return receipt


def to(
    x: Any, target: Any, *, copy: bool | None = None, detach: bool = False,
    resolve: bool = True, read_only: str = "auto",
    mutable_source: str = "alias", narrow: bool = False, out: Any = None,
    receipt: bool = False,
    progress: Callable[[int, int], bool | None] | None = None,
) -> Any:
    """Hands a tensor to a framework or a device: the target's own array type,
    or with ``receipt=True`` the pair of it and a Receipt. ``progress(done,
    total)`` is called now and then during a copy, in bytes; False (and nothing
    else that is falsy) cancels it, and what it raises is raised."""
    wish = _Wish(copy, detach, resolve, read_only, mutable_source, narrow,
                 progress)
    found = _find_target(target)
    if out is not None:
        result, paper = out, _fill(x, found, wish, out)
    else:
        if _sources.is_capsule(x):
            _check_capsule(x, found, wish)
        source = _sources.take(x, copy=copy, detach=detach, resolve=resolve,
                               progress=progress)
        source = _narrow(source, found, wish, False)
        result, paper = _give(source, found, wish)
    return (result, paper) if receipt else result


_PASSED = (bool, int, float, complex, str, bytes, type(None))


def to_tree(tree: Any, target: Any, *, receipt: bool = False,
            **wishes: Any) -> Any:
    """``to`` for each tensor of nested dicts, lists and tuples (a state dict,
    a pytree of them), each of its own type (OrderedDict, named tuple).
    Numbers, strings and None stay as they are, a tensor that occurs twice
    crosses once. With ``receipt=True`` also the receipts, in the same shape
    of dicts, lists and tuples (None where nothing crossed). A refusal has a
    note that says where in the tree: ``['layer'][0]``."""
    if wishes.get("out") is not None:
        raise _errors.make(
            _errors.ARGUMENT, "to_tree has no out; needs isthmus.to")
    done: dict[int, tuple[Any, Any]] = {}
    where: list[str] = []  # of a leaf that was refused, innermost first

    def leaf(x: Any) -> tuple[Any, Any]:
        if isinstance(x, _PASSED):
            return x, None
        if id(x) not in done:
            done[id(x)] = to(x, target, receipt=True, **wishes)
        return done[id(x)]

    def child(key: Any, x: Any) -> tuple[Any, Any]:
        try:
            return walk(x)
        except _errors.Error:
            where.append(f"[{_sources.plain_text(repr(key))}]")
            raise

    def walk(x: Any) -> tuple[Any, Any]:
        if isinstance(x, dict):
            pairs = {key: child(key, value) for key, value in x.items()}
            return (_like_dict(x, {k: v for k, (v, _) in pairs.items()}),
                    {k: r for k, (_, r) in pairs.items()})
        if isinstance(x, (list, tuple)):
            both = [child(n, value) for n, value in enumerate(x)]
            return (_like_list(x, [v for v, _ in both]),
                    _plain_list(x, [r for _, r in both]))
        return leaf(x)

    try:
        result, receipts = walk(tree)
    except _errors.Error as error:
        if where:
            error.add_note("in the tree at " + "".join(reversed(where)))
        raise
    return (result, receipts) if receipt else result


def _like_dict(x: Any, values: dict[Any, Any]) -> Any:
    """A dict of x's own type, order and attributes with other values."""
    if type(x) is dict:
        return values
    made = copy_module.copy(x)
    for key, value in values.items():
        made[key] = value
    return made


def _like_list(x: Any, values: list[Any]) -> Any:
    """A list or a tuple of x's own type with other values."""
    if not isinstance(x, tuple):
        if type(x) is list:
            return values
        made = copy_module.copy(x)
        made[:] = values
        return made
    if hasattr(x, "_fields"):
        return type(x)(*values)
    return type(x)(values)


def _plain_list(x: Any, values: list[Any]) -> Any:
    """The same for receipts, which not every type takes."""
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*values)
    return tuple(values) if isinstance(x, tuple) else values


def empty(
    shape: Any, dtype: Any, *, align: int = 64, like: str = "numpy",
) -> Any:
    """Zeros in memory that every backend here can alias, as an array of NumPy
    or torch. ``shape`` counts values; of the dtype ``float4_e2m1fn_x2``, as
    torch does, pairs of them."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if like not in ("numpy", "torch"):
        raise _errors.make(
            _errors.ARGUMENT,
            f"empty could not be made like {like!r}: it is no framework with "
            "mutable arrays here; needs \"numpy\" or \"torch\"")
    if any(isinstance(n, bool) or not isinstance(n, int) for n in extents):
        raise _errors.make(
            _errors.ARGUMENT, f"empty could not be made: shape is {shape!r}; "
            "needs integers")
    name = dtype_name(dtype).rpartition(".")[2]  # "torch.float32" too
    return _adapter(like).empty(extents, name, align)
