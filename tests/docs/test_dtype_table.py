# SPDX-License-Identifier: Apache-2.0
"""The table of element types in docs/dtypes.md is that of dtype.def."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load():
    path = ROOT / "tools/dtype_table.py"
    spec = importlib.util.spec_from_file_location("dtype_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_made_from_the_list():
    tool = load()
    text = tool.PAGE.read_text()
    assert tool.page(text) == text, "needs tools/dtype_table.py"
    numbers = [int(cells[0]) for cells in tool.rows()]
    assert numbers == list(range(len(numbers))) and len(numbers) > 30
    assert all(f"| `{cells[1]}` |" in text for cells in tool.rows())
