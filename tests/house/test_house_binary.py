# SPDX-License-Identifier: Apache-2.0
"""The laws that hold for what was built: state, symbols, needs, version."""

import re
import subprocess
import sys

import pytest
from house_env import BUILD, ROOT
import house_binary

HEADERS = sorted((ROOT / "include/isthmus").glob("*.h"))
SHARED = BUILD / "libisthmus.so"
STATEFUL = """static int counter;
int ist_count(void);
int ist_count(void) { return ++counter; }
"""
STATELESS = """static int one(void) { return 1; }
static int (*const table[])(void) = {one};
int ist_count(int n);
int ist_count(int n) { return table[n](); }
"""


def archive(folder, text):
    (folder / "a.c").write_text(text)
    subprocess.run(["cc", "-fPIC", "-c", "a.c"], cwd=folder, check=True)
    subprocess.run(["ar", "rc", "liba.a", "a.o"], cwd=folder, check=True)
    return folder / "liba.a"


def version():
    text = (ROOT / "include/isthmus/version.h").read_text()
    return [re.search(rf"IST_VERSION_{part} (\d+)", text).group(1)
            for part in ("MAJOR", "MINOR", "PATCH")]


def test_the_library__holds_no_state():
    assert list(house_binary.writable(BUILD / "libisthmus.a")) == []


def test_a_planted_counter__is_found(tmp_path):
    found = list(house_binary.writable(archive(tmp_path, STATEFUL)))
    assert found == [("a.o", "counter")]


def test_a_constant_table__is_no_state(tmp_path):
    assert list(house_binary.writable(archive(tmp_path, STATELESS))) == []


def test_exported_symbols__equal_the_list_in_abi():
    lines = (ROOT / "abi/isthmus.symbols").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert house_binary.exported(SHARED) == listed, \
        "tools/abi.py --write brings the list up to date"


def test_exported_symbols__are_all_declared():
    texts = [path.read_text() for path in HEADERS]
    assert house_binary.exported(SHARED) == \
        house_binary.declared(texts)


def test_a_planted_symbol__is_found(tmp_path):
    archive(tmp_path, STATEFUL)
    subprocess.run(["cc", "-shared", "-o", "liba.so", "a.o"], cwd=tmp_path,
                   check=True)
    assert "ist_count" in house_binary.exported(tmp_path / "liba.so")


def test_the_shared_library__links_only_libc():
    found = set(house_binary.needed(SHARED))
    assert found <= {*house_binary.LIBRARIES, "ld-linux-x86-64.so.2"}


def test_a_planted_library__is_found(tmp_path):
    (tmp_path / "a.c").write_text("double sin(double); int main(int c, "
                                  "char **v) { (void)v; return (int)sin(c); }")
    subprocess.run(["cc", "-fno-builtin", "a.c", "-lm", "-o", "a"],
                   cwd=tmp_path, check=True)
    assert "libm.so.6" in house_binary.needed(tmp_path / "a")


def test_soname__is_the_major_or_zero_minor():
    major, minor, _ = version()
    tail = f"0.{minor}" if major == "0" else major
    assert house_binary.soname(SHARED) == f"libisthmus.so.{tail}"


def test_version_string__equals_its_parts():
    text = (ROOT / "include/isthmus/version.h").read_text()
    assert f'IST_VERSION_STRING "{".".join(version())}"' in text


def test_every_version__equals_the_header():
    package = subprocess.run(
        [sys.executable, "-c", "import isthmus; print(isthmus.__version__)"],
        capture_output=True, text=True, check=True).stdout
    command = subprocess.run([BUILD / "isthmus", "--version"],
                             capture_output=True, text=True, check=True).stdout
    assert package.strip() == ".".join(version())
    assert command.split()[:2] == ["isthmus", ".".join(version())]


def test_the_changelog__names_the_version():
    assert f"## [{'.'.join(version())}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_layout__is_pinned_for_every_public_struct():
    done = subprocess.run([sys.executable, "tools/abi.py", "--check"], cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_interface_that_abidiff_reads__has_every_symbol():
    text = (ROOT / "abi/isthmus.abi").read_text()
    frozen = set(re.findall(r"<elf-symbol name='(ist_\w+)'", text))
    assert frozen == set(house_binary.exported(SHARED)), \
        "tools/abi.py --write brings the interface up to date"


COMPILERS = [("gcc", "-std=c11", "c"), ("clang-19", "-std=c11", "c"),
             ("g++", "-std=c++17", "c++"), ("clang++-19", "-std=c++17", "c++")]


@pytest.mark.parametrize("compiler, standard, language", COMPILERS)
def test_public_headers__are_clean_alone_and_together(compiler, standard,
                                                      language):
    names = [path.name for path in HEADERS]
    for includes in [[name] for name in names] + [names, names[::-1]]:
        text = "".join(f"#include <isthmus/{name}>\n" for name in includes)
        text += "typedef int not_an_empty_unit;\n"
        done = subprocess.run(
            [compiler, standard, "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
             "-Wconversion", "-Werror", "-fsyntax-only", "-x", language,
             "-I", str(ROOT / "include"), "-"], input=text,
            capture_output=True, text=True)
        assert done.returncode == 0, (includes, done.stderr)
