# SPDX-License-Identifier: Apache-2.0
"""What the texts name is there: functions, constants, files, verbs, Python."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [p for pattern in ("*.md", "docs/**/*.md", "catalog/**/*.md",
                           "examples/**/*.md", "bench/*.md",
                           "catalog/isthmus/*.toml")
         for p in sorted(ROOT.glob(pattern))]
HEADERS = "\n".join(p.read_text() for p in ROOT.glob("include/isthmus/*.h"))
VERBS = set(re.findall(r"^IST_VERB\(\w+, (\w+),",
                       (ROOT / "cli/verbs.def").read_text(), re.M))

pages = pytest.mark.parametrize("path", PAGES,
                                ids=lambda p: str(p.relative_to(ROOT)))


@pages
def test_c_names_are_declared(path):
    text = path.read_text()
    named = set(re.findall(r"\b(?:ist_[a-z]\w*|IST_[A-Z]\w*\b(?![*.]))", text))
    named -= {name for name in named if name.endswith("_")}
    named -= {"ist_noun_verb"}  # the rule for names
    assert [n for n in sorted(named)
            if not re.search(rf"\b{n}\b", HEADERS)] == []


@pages
def test_commands_have_a_verb(path):
    text = path.read_text()
    shown = re.findall(r"(?:^    |^\$ |`)(?:build/)?isthmus ([a-z]+)\b", text,
                       re.M)
    assert [v for v in shown if v not in VERBS] == []


@pages
def test_python_names_are_exported(path):
    import isthmus
    named = set(re.findall(r"\bisthmus\.([a-z_]\w*|[A-Z]\w*)\b",
                           path.read_text()))
    files = {"h", "pc", "cmake", "symbols", "md", "so"}
    later = {"jax"} if path.name in ("CHANGELOG.md",) else set()
    assert [n for n in sorted(named - files - later)
            if not hasattr(isthmus, n)] == []


@pages
def test_paths_are_there(path):
    named = set(re.findall(r"`((?:src|include|tests|tools|docs|catalog|cli|"
                           r"examples|bench|python)/[\w./-]+)`",
                           path.read_text()))
    assert [n for n in sorted(named)
            if not (ROOT / n).exists()
            and not re.search("[A-Z]{4}", n)] == []  # FOLDER stands for one
