#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads catalog/ and writes src/base/catalog_text.def from it.

  catalog_to_c.py            writes the file
  catalog_to_c.py --check    exit 1 when the file is not what would be written
  catalog_to_c.py --id SLUG  prints the line of catalog/ids.txt for a new entry
"""

import argparse
import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = "src/base/catalog_text.def"
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// catalog_text.def: written by tools/catalog_to_c.py from catalog/isthmus/.
// IST_TEXT(code, slug, title, meaning, solution); a solution is one line each.

"""


def entry_id(repo, slug):
    """The first 16 hex digits of SHA-256 of repo, a newline and slug."""
    return hashlib.sha256(f"{repo}\n{slug}".encode()).hexdigest()[:16]


def fields(root=ROOT):
    """The names of all fields, in the schema's order."""
    schema = json.loads((root / "catalog/record.schema.json").read_text())
    return list(schema["properties"])


def load(path, root=ROOT):
    """An entry as the JSON record: every field there, absent ones None."""
    with open(path, "rb") as file:
        found = tomllib.load(file)
    names = fields(root)
    unknown = sorted(set(found) - set(names))
    if unknown:
        raise ValueError(f"{path}: no such field: {', '.join(unknown)}")
    return {name: found.get(name) for name in names}


def codes(root=ROOT):
    """(name, number) of every code, in the order of catalog.def."""
    text = (root / "src/base/catalog.def").read_text()
    found = re.findall(r"^IST_CODE\((\w+), (\d+)\)$", text, re.M)
    return [(name, int(number)) for name, number in found]


def own(root=ROOT):
    """(number, entry) of every entry of our own, by number."""
    pairs = []
    for path in (root / "catalog/isthmus").glob("*.toml"):
        pairs.append((int(path.name.split("-")[0]), load(path, root)))
    return sorted(pairs, key=lambda pair: pair[0])


def c_string(text, indent="         ", width=80):
    """A C string literal of text, in pieces that fit the line."""
    pieces, piece = [], ""
    for word in re.findall(r"\S+\s*|\s+", text):
        word = word.replace("\\", "\\\\").replace('"', '\\"')
        word = word.replace("\n", "\\n").replace("??", "?\\?")
        if piece and len(indent) + len(piece) + len(word) + 4 > width:
            pieces.append(piece)
            piece = ""
        piece += word
    pieces.append(piece)
    return ("\n" + indent).join(f'"{p}"' for p in pieces)


def render(root=ROOT):
    """The whole of catalog_text.def."""
    lines = [HEAD.rstrip("\n"), ""]
    for number, entry in own(root):
        solution = "\n".join(entry["solutions"])
        texts = [entry["errorMessage"], entry["documentation"], solution]
        body = ",\n         ".join(c_string(text) for text in texts)
        lines.append(f'IST_TEXT({number}, "{entry["slug"]}",')
        lines.append(f"         {body})")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--id", metavar="SLUG")
    options = parser.parse_args()
    if options.id:
        print(entry_id("isthmus", options.id), "isthmus", options.id)
        return 0
    path, text = ROOT / OUTPUT, render()
    if options.check:
        if path.read_text() == text:
            return 0
        print(f"{OUTPUT}: stale; run tools/catalog_to_c.py", file=sys.stderr)
        return 1
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
