# SPDX-License-Identifier: Apache-2.0
"""The copies that NumPy makes here, for what the C library cannot read: part
by part, so that they tell how far they are and Ctrl-C stops them."""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator

import numpy as np

from . import _errors

Progress = Callable[[int, int], "bool | None"]
# Between two calls at most so much is written (as in _core_progress.c).
_PART = 8 << 20


def _parts(shape: tuple[int, ...], size: int) -> Iterator[tuple[Any, ...]]:
    """Indices that cut an array of items of a size into such parts."""
    if not shape or math.prod(shape) * size <= _PART:
        yield ()
        return
    row = math.prod(shape[1:]) * size
    if row > _PART:
        for i in range(shape[0]):
            for rest in _parts(shape[1:], size):
                yield (i, *rest)
        return
    step = _PART // row
    for start in range(0, shape[0], step):
        yield (slice(start, start + step),)


def _ask(progress: Progress, done: int, total: int) -> None:
    answer = progress(done, total)
    if answer is False or isinstance(answer, np.bool_) and not answer:
        raise _errors.make(
            _errors.CANCELLED,
            "a copy was not finished: its progress function cancelled it "
            f"after {done} of {total} bytes; needs one that returns true")


def copy(
    target: np.ndarray[Any, Any], source: np.ndarray[Any, Any],
    progress: Progress | None, casting: Any = "same_kind",
) -> None:
    """``numpy.copyto`` that tells."""
    if progress is not None and not callable(progress):
        raise _errors.make(
            _errors.ARGUMENT,
            "progress could not be called: it is no function; needs a "
            "callable that takes (done, total) in bytes, or None")
    done, total = 0, target.nbytes
    if progress is not None and total > 0:
        _ask(progress, 0, total)
    for part in _parts(target.shape, target.itemsize):
        into = target[(*part, ...)]
        np.copyto(into, source[(*part, ...)], casting=casting)
        done += into.nbytes
        if progress is not None and total > 0:
            _ask(progress, done, total)
