# SPDX-License-Identifier: Apache-2.0
"""The messages that the sources write, as (code, file, sample text): each
literal that follows a code's name in one statement, with specifiers filled.
C names codes IST_ERR_SHAPE, the Python package _errors.SHAPE."""

import re
from pathlib import Path

STRING = r'"(?:[^"\\]|\\.)*"'
TOKEN = re.compile(rf"({STRING})|([A-Za-z_]\w*)|([;{{}}?:,()=])")
FOLDERS = ("src", "cli", "python")


def defines(text):
    """Object-like macros that are strings: {"COULD_NOT": "..."}."""
    text = text.replace("\\\n", " ")
    found = re.findall(rf"^#define (\w+)\s+((?:{STRING}\s*)+)$", text, re.M)
    return {name: joined(re.findall(STRING, value)) for name, value in found}


def joined(literals):
    return "".join(s[1:-1] for s in literals)


def filled(text):
    """The text with each printf specifier replaced by a sample."""
    text = re.sub(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]",
                  lambda m: "1", text.replace("%%", "\0"))
    return text.replace("\0", "%").replace('\\"', '"').replace("\\\\", "\\")


def in_text(text):
    """(code, sample) of every message in one source."""
    macros = defines(text)
    text = re.sub(r"//[^\n]*|^#.*$", "", text, flags=re.M)
    code, pieces = None, []
    for string, name, mark in TOKEN.findall(text):
        if string and code:
            pieces.append(string[1:-1])
        elif name.startswith("IST_ERR_"):
            code, pieces = name, []
        elif name in macros and code:
            pieces.append(macros[name])
        elif name.startswith("PRI") and pieces:
            pieces.append("d")
        elif pieces and (mark or name):
            sample = filled("".join(pieces))
            if "; needs " in sample:
                yield code, sample
            code, pieces = None, []
        elif mark in (";", "{", "}"):
            code = None


def in_python(text):
    """(code, sample) of every message in one Python source."""
    pattern = rf"_errors\.([A-Z_]+),\s*((?:f?{STRING}\s*)+)"
    for name, pieces in re.findall(pattern, text):
        sample = joined(re.findall(STRING, pieces))
        yield f"IST_ERR_{name}", re.sub(r"\{[^}]*\}", "1", filled(sample))


def sources(root):
    for folder in FOLDERS:
        yield from sorted(Path(root, folder).rglob("*.c"))
        yield from sorted(Path(root, folder).rglob("*.py"))


def written(root):
    """Every (code, path, sample) of the tree, each message once."""
    found = []
    for path in sources(root):
        read = in_python if path.suffix == ".py" else in_text
        for code, sample in read(path.read_text()):
            found.append((code, str(path.relative_to(root)), sample))
    return sorted(set(found))


def literals(root):
    """All string literals of the sources, neighbours joined, in one text."""
    texts = []
    for path in sources(root):
        found = re.findall(rf"(?:f?{STRING}\s*)+", path.read_text())
        texts += [filled(joined(re.findall(STRING, text))) for text in found]
    return "\n".join(texts)
