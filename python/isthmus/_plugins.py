# SPDX-License-Identifier: Apache-2.0
"""Which PJRT plugins are installed here, and isthmus.open, which takes one by
name. Nothing is imported, loaded or registered to find them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from . import _core, _errors

_VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
_GROUPS = ("jax_plugins", "xla_plugins")
_MOST_LIST = 8 << 20  # bytes of a package's file that is looked at

_Option = str | bool | int | float | list[int] | tuple[int, ...]


class Plugin(NamedTuple):
    """An installed plugin: its name, its file, and how it was found."""

    name: str
    path: str
    found_by: str


class _Broken(NamedTuple):
    """What should be a plugin and is none."""

    name: str
    path: str
    found_by: str
    problem: str


_Found = Plugin | _Broken


def _judged(name: str, path: str, found_by: str) -> _Found:
    if not os.access(path, os.R_OK):
        return _Broken(name, path, found_by, "the file cannot be read")
    if not _core.exports_plugin(path):
        return _Broken(name, path, found_by,
                       "it is no library that exports GetPjrtApi")
    return Plugin(name, path, found_by)


def _of_environment() -> Iterator[_Found]:
    for item in os.environ.get(_VARIABLE, "").split(","):
        name, colon, path = item.partition(":")
        if colon:
            yield _judged(name, path, _VARIABLE)
        elif item:
            yield _Broken(item, item, _VARIABLE,
                          "it is not of the form NAME:PATH")


def _of_module(folder: Path, name: str, found_by: str) -> Iterator[_Found]:
    """The plugins in a module's folder."""
    found = [library for library in sorted(map(str, folder.glob("*.so")))
             if _core.exports_plugin(library)]
    for library in found:
        yield Plugin(name, library, found_by)
    if not found:
        yield _Broken(name, str(folder), found_by,
                      "no library in it exports GetPjrtApi")


def _of_namespaces(site: str) -> Iterator[_Found]:
    for group in _GROUPS:
        for folder in sorted(Path(site, group).glob("*")):
            if folder.is_dir() and folder.name[0] not in "_.":
                yield from _of_module(folder, folder.name, group)


def _lines(path: str) -> list[str] | None:
    """The lines of a package's file, whatever its bytes; None when it is no
    regular file, or too large. Pipes and devices are not waited for."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK |
                       os.O_NOCTTY)
    except OSError:
        return None
    try:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MOST_LIST:
            return None
        with os.fdopen(file, "rb", closefd=False) as opened:
            data = opened.read(_MOST_LIST)
    except OSError:
        return None
    finally:
        os.close(file)
    return [os.fsdecode(line) for line in data.replace(b"\0", b"").splitlines()]


def _of_packages(site: str, file: str) -> Iterator[tuple[str, list[str]] | _Broken]:
    """The package of each PACKAGE.dist-info/file, and its lines."""
    try:
        names = sorted(os.listdir(site))
    except OSError:
        return
    for name in names:
        path = os.path.join(site, name, file)
        if (name.startswith(".") or not name.endswith(".dist-info")
                or not os.path.lexists(path)):
            continue
        package = name.split("-")[0]
        lines = _lines(path)
        if lines is None:
            yield _Broken(package, path, "installed packages",
                          "it is no file of at most 8 MiB that can be read")
        else:
            yield package, lines


def _entries(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """Group, name and module of each entry point that is one of ours. Lines
    that are none are left out."""
    group = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            group = line[1:].partition("]")[0]
            continue
        name, equals, target = map(str.strip, line.partition("="))
        module = target.partition(":")[0].partition("[")[0].strip()
        if (group in _GROUPS and equals and name and module
                and not line.startswith("#")):
            yield group, name, module


def _of_entry_points(site: str) -> Iterator[_Found]:
    for package in _of_packages(site, "entry_points.txt"):
        if isinstance(package, _Broken):
            yield package
            continue
        for group, name, module in _entries(package[1]):
            folder = Path(site, *module.split("."))
            if not folder.is_dir() and "." in module:
                folder = folder.parent  # a module that is one file
            yield from _of_module(folder, name, f"entry point {group}")


def _of_files(site: str) -> Iterator[_Found]:
    for package in _of_packages(site, "RECORD"):
        if isinstance(package, _Broken):
            yield package
            continue
        for line in package[1]:
            file = line.partition(",")[0]
            name = file.rpartition("/")[2]
            if not (len(name) > 3 and name.endswith(".so") and
                    ("pjrt" in name or name == "libtpu.so")):
                continue
            path = f"{site}/{file}"
            if _core.exports_plugin(path):
                yield Plugin(package[0], path, f"files of {package[0]}")


def _all() -> Iterator[_Found]:
    yield from _of_environment()
    for site in _sites():
        yield from _of_namespaces(site)
        yield from _of_entry_points(site)
        yield from _of_files(site)


def _sites() -> list[str]:
    """The folders that Python imports packages from."""
    named = os.environ.get("ISTHMUS_SITE_PACKAGES")
    found = sys.path if named is None else named.split(":")
    return list(dict.fromkeys(path for path in found if os.path.isdir(path)))


def _identity(path: str) -> object:
    try:
        facts = os.stat(path)
    except OSError:
        return path
    return facts.st_dev, facts.st_ino


def _find() -> tuple[list[Plugin], list[_Broken]]:
    """All that is found, each file once."""
    good: dict[object, Plugin] = {}
    broken: dict[object, _Broken] = {}
    for it in _all():
        key = _identity(it.path)
        if isinstance(it, Plugin):
            good.setdefault(key, it)
        else:
            broken.setdefault((key, it.found_by), it)
    return list(good.values()), list(broken.values())


def plugins() -> list[Plugin]:
    """The PJRT plugins that are installed: named by the variable
    PJRT_NAMES_AND_LIBRARY_PATHS, in the packages jax_plugins and xla_plugins,
    by entry points of these names, or a file *pjrt*.so of a package. What is
    broken is warned of."""
    import warnings

    good, broken = _find()
    for it in broken:
        warnings.warn(f"{it.found_by}: {it.name} is no plugin: {it.path}: "
                      f"{it.problem}", RuntimeWarning, stacklevel=2)
    return good


def _choose(name: str | None) -> str:
    """The file of the plugin of a name, or of the one that there is."""
    found, _ = _find()
    first = [it for it in found if it.found_by == _VARIABLE]
    names = ", ".join(it.name for it in found)
    if name is None and len(found) != 1:
        found = first if len(first) == 1 else found
    if name is not None:
        found = [it for it in found if it.name == name][:1]
    if len(found) == 1:
        return found[0].path
    if name is None and found:
        raise _errors.make(
            _errors.NO_BACKEND,
            f"backend pjrt could not be opened: no plugin was named, and "
            f"{len(found)} were found ({names}); needs the name or the path of "
            "one")
    raise _errors.make(
        _errors.NO_BACKEND,
        f"backend pjrt could not be opened: no plugin "
        f"{name + ' ' if name else ''}was found"
        f"{' among ' + names if names else ''}; needs the path of one, or a "
        "package that has one")


def open(  # noqa: A001
    place: str,
    *,
    path: str | os.PathLike[str] | None = None,
    options: Mapping[str, _Option] | None = None,
    trusted: bool = False,
) -> _core.Backend:
    """Opens a device runtime: "host", "template", "pjrt:P.so#0", "pjrt:NAME" for
    an installed plugin (isthmus.plugins), or "pjrt" for the only one.

    An unknown plugin is first opened in a process of its own, so that one that
    kills itself raises an Error; trusted=True leaves that out."""
    if path is None and isinstance(place, str):
        kind, colon, rest = place.partition(":")
        name = rest.split("#")[0]
        if kind == "pjrt" and not colon:
            path = _choose(None)
        elif (kind == "pjrt" and "/" not in name
              and not os.path.exists(rest) and not os.path.exists(name)
              and any(it.name == name for it in _find()[0])):
            path = _choose(name)
    return _core.open(place, path=path, options=options, trusted=trusted)
