# SPDX-License-Identifier: Apache-2.0
"""isthmus.load and save: .npy and .safetensors."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping

from . import _core, _errors, _sources
from ._convert import dtype_name


def load(
    path: str | os.PathLike[str], name: str | None = None, *,
    dtype: Any = None,
) -> Any:
    """A Tensor of a .npy file, or of the tensor ``name`` of a .safetensors
    file; without a name a dict of all its tensors. They view the mapped file.
    ``dtype`` is what a .npy file of "V1" or "V2" holds: a name, or a dtype as
    ``astype`` takes it."""
    held = None if dtype is None else dtype_name(dtype)
    return _core.load(path, held, name)


def save(
    path: str | os.PathLike[str], x: Any, *,
    progress: Callable[[int, int], bool | None] | None = None,
) -> None:
    """Writes one array as .npy, or a dict of arrays as .safetensors, whole or
    not at all. ``progress`` as for ``to``: each array counts twice, made dense
    and written."""
    if isinstance(x, Mapping):
        names = list(x)
        if not all(isinstance(name, str) for name in names):
            raise _errors.make(
                _errors.ARGUMENT,
                "a file could not be saved: a name is no str; needs names of "
                "tensors as keys")
        _core.save(path, names, [_tensor(x[name], progress) for name in names],
                   progress)
    elif os.fsdecode(path).endswith(".safetensors"):
        raise _errors.make(
            _errors.ARGUMENT,
            f"a file could not be saved: {type(x).__name__} has no name for "
            "its tensor in .safetensors; needs a dict such as {\"x\": x}")
    else:
        _core.save(path, None, [_tensor(x, progress)], progress)


def _tensor(
    x: Any, progress: Callable[[int, int], bool | None] | None,
) -> _core.Tensor:
    # Only values are read: nothing of a graph is lost to anybody.
    return _sources.take(x, copy=None, detach=True, resolve=True,
                         progress=progress).tensor
