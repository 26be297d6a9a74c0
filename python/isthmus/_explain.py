# SPDX-License-Identifier: Apache-2.0
"""isthmus.explain: the catalog's entry of a code, a text or an exception."""

from __future__ import annotations

from . import _core, _errors
from ._errors import Entry


def explain(what: int | str | BaseException) -> Entry | None:
    """The entry of isthmus's own code (202, "IST_ERR_SHAPE", "shape"), of the
    first message of isthmus in a text or a log, or of an exception; None when
    there is none."""
    if isinstance(what, _errors.Error):
        return what.entry
    if isinstance(what, BaseException):
        what = str(what)
    if isinstance(what, int):
        return _errors.find(what)
    if isinstance(what, str):
        code = _core.catalog_match(what.strip())
        return None if code is None else _errors.find(code)
    raise _errors.make(
        _errors.ARGUMENT,
        f"nothing could be explained: it is a {type(what).__name__}; needs a "
        "code (202), a text or an exception")
