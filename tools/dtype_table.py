# SPDX-License-Identifier: Apache-2.0
"""Writes the table of element types in docs/dtypes.md from
src/tensor/dtype.def.

  tools/dtype_table.py          writes it
  tools/dtype_table.py --check  fails when it is another
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/dtypes.md"
BEGIN = "<!-- made by tools/dtype_table.py -->\n"
END = "<!-- end -->\n"
HEAD = ("number", "name", "code", "bits", "NumPy", "`struct`", "torch",
        "jax", "PJRT", ".npy", ".safetensors")


def rows():
    """The rows of dtype.def as lists of texts; NULL and 0 are None."""
    text = (ROOT / "src/tensor/dtype.def").read_text()
    for body in re.findall(r"^IST_DTYPE\((.*?)\)$", text, re.M | re.S):
        cells = [cell.strip().strip('"') for cell in body.split(",")]
        yield [None if cell == "NULL" else cell for cell in cells]


def code(text):
    return "–" if text is None else f"`{text}`"


def line(cells):
    (number, name, kind, bits, npy, form, safetensors, pjrt, torch, lanes,
     jax) = cells
    theirs = name if npy else f"ml_dtypes.{name}"
    void = f"V{max(int(bits) // 8, 1)}"
    if torch and lanes != "1":
        torch = f"{torch}` ({lanes} lanes)"
        torch = f"`{torch}"
    else:
        torch = code(torch)
    return (number, code(name), code(kind), bits, code(theirs), code(form),
            torch, code(jax), pjrt if pjrt != "0" else "–",
            code(npy or void), code(safetensors))


def table():
    lines = [HEAD, ["---"] * len(HEAD), *map(line, rows())]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def page(text):
    """The page with its table as it should be."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + table() + "\n" + END + after


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    has = PAGE.read_text()
    needs = page(has)
    if check and has != needs:
        sys.exit("docs/dtypes.md: its table is not that of dtype.def; needs "
                 "tools/dtype_table.py")
    if not check:
        PAGE.write_text(needs)


if __name__ == "__main__":
    main()
