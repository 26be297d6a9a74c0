# SPDX-License-Identifier: Apache-2.0
"""isthmus.explain: the catalog's entry of a code, a name or an Error."""

from __future__ import annotations

from . import _core, _errors
from ._errors import Entry


def explain(what: int | str | BaseException) -> Entry | None:
    """The entry of isthmus's own code (202, "IST_ERR_SHAPE") or Error, or
    None when there is no such code."""
    if isinstance(what, _errors.Error):
        return what.entry
    if isinstance(what, int):
        return _errors.find(what)
    if isinstance(what, str):
        name = what.strip()
        if name.isdigit():
            return _errors.find(int(name))
        code = _core.code_of_name(name)
        if code is not None:
            return _errors.find(code)
        if name.startswith("IST_ERR_"):
            return None
    raise _errors.make(
        _errors.NOT_IN_VERSION,
        "not in this version: messages of others are not explained; needs a "
        "code of isthmus (202, \"IST_ERR_SHAPE\") or an isthmus.Error")
