# SPDX-License-Identifier: Apache-2.0
"""What the README and docs/ show works as typed; what they link to is there."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ISTHMUS_BUILD", ROOT / "build"))
TEXTS = sorted(p for folder in (".", "docs", "docs/decisions", "catalog",
                                "examples", "examples/*", "bench")
               for p in ROOT.glob(f"{folder}/*.md"))
PLUGIN = os.environ.get("ISTHMUS_P1")
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def blocks(path, language):
    """The fenced blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(),
                      re.M | re.S)


def anchors(path):
    """The addresses of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True,
                          text=True, **more)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            lost.append(link)
        elif anchor and anchor not in anchors(target):
            lost.append(link)
    assert lost == []


def test_readme_leads_to_every_page():
    readme = (ROOT / "README.md").read_text()
    pages = [f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")]
    assert [page for page in pages if f"]({page})" not in readme] == []


def test_picture_is_well_formed():
    ET.parse(ROOT / "docs/architecture.svg")


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_c_blocks_compile(path, tmp_path):
    for number, block in enumerate(blocks(path, "c")):
        source = tmp_path / f"block{number}.c"
        if not re.search("^(static|int|#include)", block, re.M):
            block = ("static void show(ist_context *context, ist_error err) {\n"
                     + block + "(void)context, (void)err; }\n")
        source.write_text("#include <isthmus/backend.h>\n" + block)
        done = run("cc", *STRICT, "-Wno-unused-function", "-fsyntax-only",
                   "-I", ROOT / "include", source)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def package(tmp_path_factory):
    """The environment to compile against the installed package with."""
    prefix = tmp_path_factory.mktemp("prefix")
    done = run("cmake", "--install", BUILD, "--prefix", prefix)
    assert done.returncode == 0, done.stderr
    folder = next(prefix.glob("**/pkgconfig"))
    env = dict(os.environ, PKG_CONFIG_PATH=str(folder))
    env["LD_LIBRARY_PATH"] = str(folder.parent)
    env["PREFIX"] = str(prefix)
    return env


def build(package, block, folder, command):
    """Compiles a program with the command that its page shows."""
    (folder / "first.c").write_text(block)
    (folder / "build").mkdir()
    (folder / "build/prefix").symlink_to(package["PREFIX"])
    done = run("sh", "-c", command, cwd=folder, env=package)
    assert done.returncode == 0, done.stderr
    return folder / "first"


def test_author_page_is_a_backend_that_works(package, tmp_path):
    page = ROOT / "docs/backend-authors.md"
    command = re.search(r"`(cc mine\.c [^`]+)`", page.read_text()).group(1)
    command = " ".join(command.replace("mine.c", "first.c -o first").split())
    program = build(package, blocks(page, "c")[0], tmp_path, command)
    done = run(program, env=package)
    assert done.stdout == "in: copy, out: copy\n"
    assert f"`{done.stdout.strip()}`" in page.read_text()
    assert done.returncode == 0


def test_readme_c_works_as_typed(package, tmp_path):
    block = blocks(ROOT / "README.md", "c")[0]
    assert len(block.splitlines()) <= 20
    command = re.search(r"^    (cc first\.c .*)$",
                        (ROOT / "README.md").read_text(), re.M).group(1)
    del package["LD_LIBRARY_PATH"], package["PKG_CONFIG_PATH"]
    program = build(package, block, tmp_path, command)
    done = run(program, cwd=tmp_path, env=package)
    assert (done.stdout, done.stderr) == ("alias 0\n", "")
    if PLUGIN is None:
        pytest.skip("ISTHMUS_P1: no plugin wheel on this machine")
    done = run(program, PLUGIN, cwd=tmp_path, env=package)
    assert (done.stdout, done.stderr) == ("alias 0\n", "")


def test_readme_python_works_as_typed(tmp_path):
    block = blocks(ROOT / "README.md", "python")[0]
    assert len(block.splitlines()) <= 20
    (tmp_path / "first.py").write_text(block)
    done = run(sys.executable, "first.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("copy 48 [(") and "negative" in lines[0]
    assert lines[1] == "alias 0"
    assert "104" in lines[2] or "COPY_NEEDED" in lines[2]
    assert lines[-1] == "alias"


def test_readme_verbs_are_the_commands_verbs():
    shown = set(re.findall(r"^    isthmus (\w+)",
                           (ROOT / "README.md").read_text(), re.M))
    listed = re.findall(r"^IST_VERB\(\w+, (\w+),",
                        (ROOT / "cli/verbs.def").read_text(), re.M)
    assert shown == set(listed)


def reasons():
    """(number, name, sentence) of every reason, from reason.def."""
    text = (ROOT / "src/bridge/reason.def").read_text()
    found = re.findall(r'^IST_REASON\(\w+, (\d+), "(\w+)",\s*'
                       r'((?:"[^"]*"\s*)+)\)', text, re.M)
    assert len(found) == text.count("\nIST_REASON(")
    for number, name, pieces in found:
        yield number, name, "".join(re.findall('"([^"]*)"', pieces))


def test_page_of_routes_lists_every_reason():
    page = (ROOT / "docs/routes.md").read_text()
    rows = [line for line in page.splitlines() if re.match(r"\| \d+ \|", line)
            and "`IST_" not in line]
    due = [f"| {number} | `{name}` | "
           + text.replace("%a", "*A*").replace("%n", "*N*")
           .replace("%o", " *to an order*") + " |"
           for number, name, text in reasons()]
    assert rows == due


def test_page_of_python_works_as_typed(tmp_path):
    for name in ("images.npy", "weights.safetensors"):
        (tmp_path / name).symlink_to(ROOT / "examples/digits" / name)
    if PLUGIN:
        (tmp_path / "plugin.so").symlink_to(PLUGIN)
    done = blocks(ROOT / "docs/python.md", "python")
    if not PLUGIN:
        done = [block for block in done if "plugin.so" not in block]
    (tmp_path / "page.py").write_text("\n".join(done))
    ran = run(sys.executable, "page.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
