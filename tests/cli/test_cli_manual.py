# SPDX-License-Identifier: Apache-2.0
"""The man page, the completions, the help texts and docs/command.md agree with
the one list, cli/verbs.def."""

import re
import shutil
import subprocess
import sys

import pytest

import cli_env

CLI = cli_env.ROOT / "cli"
sys.path.insert(0, str(CLI))
import write_manual  # noqa: E402

VERBS, OPTIONS = write_manual.read_verbs((CLI / "verbs.def").read_text())
LATER = ("matrix", "errors", "tap")


@pytest.mark.parametrize("name", sorted(write_manual.documents(CLI)))
def test_each_document__is_up_to_date(name):
    assert (CLI / name).read_text() == write_manual.documents(CLI)[name], \
        "run python cli/write_manual.py"


def test_a_stale_document__is_found(tmp_path):
    root = tmp_path / "cli"
    shutil.copytree(CLI, root)
    header = tmp_path / "include/isthmus"
    header.mkdir(parents=True)
    shutil.copy(cli_env.ROOT / "include/isthmus/version.h", header)
    check = [sys.executable, str(root / "write_manual.py"), "--check"]
    assert subprocess.run(check).returncode == 0
    (root / "isthmus.1").write_text("")
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 1
    assert "isthmus.1" in done.stdout


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_help_of_a_verb__names_all_its_options(verb, tmp_path):
    done = cli_env.run(tmp_path, verb.name, "--help")
    assert (done.code, done.err) == (0, b"")
    named = set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", done.out.decode(), re.M))
    assert named == {o.name for o in OPTIONS if verb.name in o.verbs}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_page_of_the_command__names_every_option(verb):
    page = (cli_env.ROOT / "docs/command.md").read_text()
    assert f"isthmus {verb.name}" in page
    for option in OPTIONS:
        assert f"--{option.name}" in page, option.name


def test_the_list__has_no_verb_of_a_later_version(tmp_path):
    assert not {verb.name for verb in VERBS} & set(LATER)
    text = cli_env.run(tmp_path, "--help").out.decode()
    assert not re.search(rf"^ +({'|'.join(LATER)})\b", text, re.M)


@pytest.mark.parametrize("verb", LATER)
def test_a_verb_of_a_later_version__is_refused_by_name(verb, tmp_path):
    done = cli_env.run(tmp_path, verb, "x.so")
    assert (done.code, done.out) == (1, b"")
    assert re.fullmatch(rf"isthmus: not in this version: {verb}; needs .*"
                        r"\[IST_ERR_NOT_IN_VERSION 102\]\n", done.err.decode())


def test_the_bash_completion__completes_verbs_options_and_words():
    bash = shutil.which("bash")
    script = f"""
source {CLI / 'completions' / 'isthmus.bash'}
try() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  _isthmus; echo "${{COMPREPLY[*]}}"; }}
try isthmus ro
try isthmus move --co
try isthmus move --copy n
"""
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["route", "--copy", "never"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_completion__is_a_script_of_its_shell(shell):
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not here")
    name = {"zsh": "_isthmus", "fish": "isthmus.fish"}[shell]
    done = subprocess.run([path, "-n", str(CLI / "completions" / name)],
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_man_page__is_read_without_a_warning():
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not here")
    done = subprocess.run([groff, "-man", "-ww", "-Tutf8",
                           str(CLI / "isthmus.1")],
                          capture_output=True, text=True)
    assert done.stderr == ""
    shown = re.sub(".\x08", "", done.stdout)  # bold is printed twice
    for verb in VERBS:
        assert verb.name in shown


def test_the_manual_and_completions__are_installed(tmp_path):
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not here")
    subprocess.run([cmake, "--install", cli_env.BUILD, "--prefix", tmp_path],
                   check=True, capture_output=True)
    installed = [path.read_text() for path in
                 (tmp_path / "share").rglob("*isthmus*") if path.is_file()]
    for name, text in write_manual.documents(CLI).items():
        assert text in installed, name
