# SPDX-License-Identifier: Apache-2.0
"""isthmus.Error, made from the codes of the C library, and its catalog entry."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from . import _core


class Entry(NamedTuple):
    """One entry of the catalog of errors."""

    code: int
    name: str
    slug: str
    title: str
    meaning: str
    solution: str


def _of_c_only(advice: str) -> bool:
    """It names things of the C library and nothing of the package."""
    c_names = ("ist_", "IST_", "struct_size", "NULL")
    return "isthmus." not in advice and any(n in advice for n in c_names)


class Error(Exception):
    """What could not be done: actual; needs required.

    ``code`` is the number of the catalog's entry, ``entry`` that entry, and
    ``hint`` what to do about it.
    """

    code: int
    native: int
    _hint: str | None

    def __init__(
        self, message: str, code: int = 901, native: int = 0,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.native = native
        self._hint = hint

    @property
    def entry(self) -> Entry | None:
        return find(self.code)

    @property
    def hint(self) -> str:
        if self._hint is not None:
            return self._hint
        entry = self.entry
        if entry is None:
            return ""
        # What C code does comes after what Python code does.
        return "\n".join(sorted(entry.solution.split("\n"), key=_of_c_only))

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (self.args[0], self.code, self.native, self._hint,
                         isinstance(self, BufferError)))


class _Refusal(Error, BufferError):
    """An exchange that was refused: an Error, and what DLPack asks for."""


class _Absent(Error, AttributeError):
    """A name of a later version: an Error, and absent to hasattr()."""


def _again(
    message: str, code: int, native: int, hint: str | None, refusal: bool,
) -> Error:
    kind = _Refusal if refusal else Error
    return kind(message, code, native, hint)


# One name outside, whichever of the three it is.
for _kind in (Error, _Refusal, _Absent):
    _kind.__name__ = _kind.__qualname__ = "Error"
    _kind.__module__ = "isthmus"

NOT_IN_VERSION = 102
COPY_NEEDED = 104
READ_ONLY = 105
CLOSED = 106
SHAPE_MISMATCH = 107
DTYPE_MISMATCH = 108
REQUIRES_GRAD = 115
NOT_A_TENSOR = 116
NARROWING = 117
CANCELLED = 119
ARITY = 113
DTYPE = 205
LANES = 206
MISALIGNED = 207
DLPACK_VERSION = 208
PROGRAM = 213
PROGRAM_VERSION = 322
PRODUCER = 214
PACKING = 215
ARTIFACT = 216
NO_BACKEND = 301
TARGET_DTYPE = 309
DELETED = 312
CONSUMER = 319
ARGUMENT = 101
NO_FRAMEWORK = 405

# Codes that mean "this tensor cannot cross so": also BufferErrors.
_REFUSALS = frozenset({
    COPY_NEEDED, READ_ONLY, SHAPE_MISMATCH, DTYPE_MISMATCH, 110,
    REQUIRES_GRAD, NOT_A_TENSOR, NARROWING, *range(201, 210), PRODUCER,
    PACKING, 307, TARGET_DTYPE, 310, 311, DELETED, 313, 316, CONSUMER,
})


def find(code: int) -> Entry | None:
    """The entry of a code, or None."""
    found = _core.catalog_find(code)
    return None if found is None else Entry(*found)


def make(
    code: int, message: str, native: int = 0, note: str | None = None,
    hint: str | None = None, refusal: bool = False,
) -> Error:
    """An exception of a code; ``note`` is a plugin's own long message."""
    kind = _Refusal if refusal or code in _REFUSALS else Error
    error = kind(" ".join(message.splitlines()), code, native, hint)
    if note:
        error.add_note(note)
    return error


def refuse(code: int, message: str, hint: str | None = None) -> NoReturn:
    """Raises the refusal of an exchange."""
    raise make(code, message, hint=hint, refusal=True)


def not_in_version(what: str, needs: str) -> NoReturn:
    refuse(NOT_IN_VERSION, f"not in this version: {what}; needs {needs}")
