# SPDX-License-Identifier: Apache-2.0
"""The examples of programs that speak PJRT themselves, built against an
installed isthmus and the header of one of the plugins, and run on each."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import run, tool

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pjrt_host"
SAYS = {
    "adopter_cpp": "out: alias, 0 bytes moved, last value 3\n"
                "in:  alias, 0 bytes moved, last value 10\n",
    "adopter_c": "out: alias, 0 bytes moved, last value 5\n",
}


@pytest.fixture(scope="module")
def header():
    """The folder of a plugin's pjrt_c_api.h, of API 0.81."""
    spec = importlib.util.find_spec("xla_plugins")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        include = Path(folder) / "xla_cpu_pjrt" / "include"
        if (include / "pjrt_c_api.h").is_file():
            return include
    pytest.skip("no wheel with pjrt_c_api.h is installed")


@pytest.fixture(scope="module")
def built(installed, header, tmp_path_factory):
    source = tmp_path_factory.mktemp("source") / "pjrt_host"
    shutil.copytree(EXAMPLE, source)
    folder = tmp_path_factory.mktemp("pjrt_host")
    strict = "-Wall -Wextra -Werror"
    run(tool("cmake"), "-S", source, "-B", folder,
        f"-DCMAKE_PREFIX_PATH={installed}", f"-DPJRT_INCLUDE={header}",
        f"-DCMAKE_C_FLAGS={strict}", f"-DCMAKE_CXX_FLAGS={strict}")
    run(tool("cmake"), "--build", folder)
    return folder


@pytest.mark.parametrize("program", SAYS)
def test_host_program__exchanges_without_a_copy(built, program, plugin):
    assert run(built / program, plugin) == SAYS[program]


@pytest.mark.parametrize("program", SAYS)
def test_host_program__says_what_is_no_plugin(built, program, tmp_path):
    done = subprocess.run([built / program, tmp_path / "missing.so"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert "missing.so" in done.stderr


@pytest.mark.parametrize("order", [("pjrt_c_api.h", "isthmus/pjrt.h"),
                                   ("isthmus/pjrt.h", "pjrt_c_api.h"),
                                   ("isthmus/pjrt.h",)])
@pytest.mark.parametrize("language, standard", [("c", "c11"),
                                                ("c++", "c++17")])
def test_header__comes_before_or_after_the_apis_own(
        installed, header, order, language, standard):
    text = "".join(f"#include <{name}>\n" for name in order)
    text += "struct PJRT_Client *mine(const ist_backend *backend);\n"
    text += "struct PJRT_Client *mine(const ist_backend *backend) {\n"
    text += "  return ist_pjrt_client(backend);\n}\n"
    run(tool("cc"), "-x", language, f"-std={standard}", "-Wall", "-Wextra",
        "-Werror", "-fsyntax-only", f"-I{installed}/include", "-isystem",
        header, "-", input=text)


def test_readme__shows_what_the_examples_print():
    text = (EXAMPLE / "README.md").read_text()
    for says in SAYS.values():
        assert "".join("    " + line for line in
                       says.splitlines(keepends=True)) in text
