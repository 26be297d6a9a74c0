# SPDX-License-Identifier: Apache-2.0
"""What isthmus knows of the framework that an object comes from.

A framework is recognised by the module of its type and never imported here.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable, NamedTuple

from . import _core, _errors

# ist_grant: who may write the source's memory.
FROM_SOURCE = 0
WRITABLE = 1
IMMUTABLE = 2

# Reasons of a copy that an adapter makes before the route (reason.def).
RESOLVED = 14
BYTE_ORDER = 15
NARROWED = 16
ITEM_UNALIGNED = 17
UNCARRIED = 33
# A reason of the route that an adapter may have first.
PAIRS_APART = 32

# type -> (grant, plain or None, prepare or None, has a C exchange API, how
# its capsules without a version pack or None), as _core wants it.
Adapter = tuple[int, "Callable[[Any], Any] | None",
                "Callable[[Any, Any], Any] | None", bool, "str | None"]


class Prepared(NamedTuple):
    """What is imported instead of an object: the same memory, or a copy made
    for ``reason`` (0: none was made)."""

    value: Any
    reason: int = 0


class Source(NamedTuple):
    """An object as a tensor of ours."""

    tensor: _core.Tensor
    label: str | None
    reason: int = 0


def framework_of(cls: type) -> str:
    """"numpy", "torch", "jax", "tensorflow" or "": whose type this is."""
    for base in cls.__mro__:
        module = getattr(base, "__module__", "")
        if not isinstance(module, str):
            continue
        root = module.partition(".")[0]
        if root == "numpy" and base.__name__ in ("ndarray", "generic"):
            return "numpy"
        if root == "torch" and base.__name__ == "Tensor":
            return "torch"
        if root in ("jax", "jaxlib"):
            return "jax"
        if root == "tensorflow" and "Tensor" in base.__name__:
            return "tensorflow"
    return ""


def module_of(name: str) -> ModuleType | None:
    """The adapter of a framework that is loaded already."""
    if name not in sys.modules:
        return None
    if name == "numpy":
        from . import _numpy
        return _numpy
    if name == "torch":
        from . import _torch
        return _torch
    if name == "jax":
        from . import _jax
        return _jax
    return None


class Known(NamedTuple):
    """What is known of a type."""

    name: str
    module: Any  # the adapter, or None
    grant: int
    # What to import instead of an object whose capsule says all of it; None
    # for one to prepare.
    plain: Callable[[Any], Any] | None
    # How sub-byte elements lie in its capsules that cannot say it.
    packing: str | None


# Types that were looked at; emptied when full, so that types made in a loop
# do not pile up.
_known: dict[type, Known] = {}
_KEPT = 256


def known(cls: type) -> Known:
    found = _known.get(cls)
    if found is None:
        name = framework_of(cls)
        module = module_of(name)
        if module is None:
            grant = IMMUTABLE if name == "tensorflow" else FROM_SOURCE
            found = Known(name, None, grant, None, None)
        else:
            found = Known(
                name, module, module.GRANT, module.plain_check(cls),
                module.PACKING)
        if len(_known) >= _KEPT:
            _known.clear()
        _known[cls] = found
    return found


def adapter_of(cls: type) -> Adapter:
    """Called by _core once for each type."""
    it = known(cls)
    exchange = hasattr(cls, "__dlpack_c_exchange_api__")
    if it.module is None:
        return (it.grant, None, None, exchange, None)

    def prepare(x: Any, copy: bool | None) -> Any:
        return it.module.prepare(
            x, copy=copy, detach=False, resolve=True).value

    return (it.grant, it.plain, prepare, exchange, it.packing)


def _label(cls: type) -> str:
    """A producer's package, or a type of Python itself."""
    module = cls.__module__
    root = module.partition(".")[0] if isinstance(module, str) else ""
    return plain_text(cls.__name__ if root == "builtins" else root)


def plain_text(text: str) -> str:
    """At most sixty characters that can be printed, of anybody's text."""
    text = text[:60].encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in text)


def is_capsule(x: Any) -> bool:
    return type(x) is _core.CapsuleType


def take(
    x: Any, *, copy: bool | None, detach: bool, resolve: bool,
    dry: bool = False,
    progress: Callable[[int, int], bool | None] | None = None,
) -> Source:
    """An object as a tensor of ours, in the memory that it is in. With ``dry``
    nothing is copied and no capsule is consumed; NumPy's copies tell."""
    if isinstance(x, _core.Tensor):
        return Source(x, None)
    if is_capsule(x):
        return Source(_core.peek(x) if dry else _core.import_host(x, 0),
                      "capsule")
    it = known(type(x))
    label = it.name or _label(type(x))
    if it.module is None:
        return Source(_core.import_host(x, it.grant), label)
    wish = {"copy": copy, "detach": detach, "resolve": resolve, "dry": dry,
            "progress": progress}
    plain = x if it.plain is None else it.plain(x)
    if plain is not None:
        try:
            return Source(
                _core.import_host(plain, it.grant, it.packing), label)
        except _errors.Error as error:
            prepared = _again(it.module, x, wish, error)
    else:
        prepared = it.module.prepare(x, **wish)
    value = prepared.value
    if not isinstance(value, _core.Tensor):
        value = _core.import_host(value, it.grant, it.packing)
    return Source(value, label, prepared.reason)


def _again(
    module: ModuleType, x: Any, wish: dict[str, Any], error: _errors.Error,
) -> Prepared:
    try:
        prepared: Prepared = module.prepare(x, **wish)
    except _errors.Error as better:
        raise better from error
    if prepared.value is x and prepared.reason == 0:
        raise error
    return prepared
