# SPDX-License-Identifier: Apache-2.0
"""isthmus hands any tensor to any framework or device runtime: without a copy
where the memory allows it, with one honest copy where it does not, with an
explanation where neither can be."""

from __future__ import annotations

import os

from . import _core, jax
from ._core import (
    Backend,
    Device,
    Program,
    Receipt,
    Tensor,
    __version__,
    from_dlpack,
    to,
)
from ._convert import astype
from ._errors import Entry, Error
from ._exchange import empty, plan, to_tree
from ._explain import explain
from ._files import load, save
from ._pool import Pool, pool, trim_pool
from ._plugins import Plugin, open, plugins
from ._types import DeviceType, DType

__all__ = [
    "Backend", "Device", "DeviceType", "DType", "Entry", "Error", "Plugin",
    "Pool", "Program", "Receipt", "Tensor", "__version__", "astype", "empty",
    "explain", "from_dlpack", "get_include", "jax", "load", "open", "plan",
    "plugins", "pool", "save", "to", "to_tree", "trim_pool",
]


def get_include() -> str:
    """The folder to give a C compiler for ``#include <isthmus/isthmus.h>``."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


# Names of the package's contract that come later: an Error that says so, and
# an AttributeError, so that hasattr() and dir() do not see them.
_LATER = frozenset({
    "shards", "from_shards", "explain_nearest", "register",
})


def __getattr__(name: str) -> object:
    if name in _LATER:
        from ._errors import NOT_IN_VERSION, _Absent
        raise _Absent(
            f"not in this version: isthmus.{name}; needs a later one",
            NOT_IN_VERSION)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
