# SPDX-License-Identifier: Apache-2.0
"""Freezes the binary interface: abi/isthmus.symbols and abi/layout.c, and
abi/isthmus.abi, which abidiff reads.

  tools/abi.py --write   brings them up to date with headers and build
  tools/abi.py --check   fails when a public struct or enumerator is not pinned

layout.c is compiled with the tests and fails to compile when an offset, a
size or a value moved; a change of a pinned line is a break to be decided on,
never a thing to write again without a thought.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import house_binary
import house_tree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYOUT = ROOT / "abi/layout.c"
SYMBOLS = ROOT / "abi/isthmus.symbols"
DESCRIPTION = ROOT / "abi/isthmus.abi"
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// layout.c: pins every offset, size and value of the public headers; compiled
// with the tests, never run. LP64 (x86-64 and aarch64). See tools/abi.py.

"""


def headers():
    return [path for path in sorted((ROOT / "include/isthmus").glob("*.h"))
            if path.name != "version.h"]


def structs(text):
    """(type, [member]) of each struct that a header defines."""
    text = house_tree.bare(text)
    for body, name in re.findall(
            r"typedef struct \w*\s*\{(.*?)^\}\s*(\w+);", text, re.S | re.M):
        body = re.sub(r"\{[^}]*\}", "", body)
        members = []
        for field in body.split(";"):
            match = (re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", field)
                     or re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*$",
                                  field.strip()))
            if match and field.strip():
                members.append(match.group(1))
        yield name, members


def enumerators(text):
    """The names of the enumerators that a header defines."""
    text = house_tree.bare(text)
    for body in re.findall(r"typedef enum\s*\w*\s*\{(.*?)\}", text, re.S):
        yield from re.findall(r"^\s*(\w+)\s*(?:=|,|$)", body, re.M)


def wanted():
    """The expressions to pin, in the headers' order."""
    found = []
    for path in headers():
        text = path.read_text()
        for name, members in structs(text):
            found += [f"offsetof({name}, {member})" for member in members]
            found.append(f"sizeof({name})")
        found += [f"(long){name}" for name in enumerators(text)]
    return found


def evaluate(expressions):
    """What the compiler of this machine makes of the expressions."""
    includes = "".join(f"#include <isthmus/{path.name}>\n"
                       for path in headers())
    prints = "".join(f'  printf("%ld\\n", (long)({text}));\n'
                     for text in expressions)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "a.c")
        source.write_text(f"#include <stddef.h>\n#include <stdio.h>\n"
                          f"{includes}int main(void) {{\n{prints}}}\n")
        program = str(source.with_suffix(""))
        subprocess.run(["cc", "-std=c11", "-I", str(ROOT / "include"),
                        str(source), "-o", program], check=True)
        return subprocess.run([program], capture_output=True, text=True,
                              check=True).stdout.split()


def layout():
    expressions = wanted()
    lines = [HEAD]
    lines += [f"#include <isthmus/{path.name}>\n" for path in headers()]
    lines.append("#include <stddef.h>\n\n#define PIN(what, value) \\\n"
                 "  _Static_assert((what) == (value), #what)\n\n")
    lines += [f"PIN({text}, {value});\n" for text, value in
              zip(expressions, evaluate(expressions))]
    done = subprocess.run(["clang-format-19", "--assume-filename=layout.c"],
                          input="".join(lines), cwd=ROOT, capture_output=True,
                          text=True, check=True)
    return done.stdout


def describe():
    """abidw's words on the built library, without paths of this machine."""
    done = subprocess.run(
        ["abidw", "--no-corpus-path", "--no-comp-dir-path",
         "build/libisthmus.so"],
        cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.replace(f"{ROOT}/", "")


def unpinned():
    flat = re.sub(r"\s+", "", LAYOUT.read_text())
    return [text for text in wanted()
            if f"PIN({re.sub(chr(92) + 's+', '', text)}," not in flat]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.write:
        names = house_binary.declared(path.read_text() for path in headers())
        LAYOUT.parent.mkdir(exist_ok=True)
        LAYOUT.write_text(layout())
        SYMBOLS.write_text("# SPDX-License-Identifier: Apache-2.0\n"
                           "# What libisthmus.so exports; see tools/abi.py.\n"
                           + "".join(f"{name}\n" for name in names))
        if shutil.which("abidw"):
            DESCRIPTION.write_text(describe())
        else:
            print("abi/isthmus.abi: left as it was: needs abigail-tools")
    missing = unpinned()
    for text in missing:
        print(f"abi/layout.c: {text} is not pinned; tools/abi.py --write")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
