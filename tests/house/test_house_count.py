# SPDX-License-Identifier: Apache-2.0
"""The closing line counts the truth, and torch is taken only for the CPU."""

import re
import subprocess
import sys

import pytest
from house_env import ROOT
import count_results
import run_c_tests
import torch_refusal

GOOD = '<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>'
BAD = GOOD.replace("/></testsuite", "><failure/></testcase></testsuite")
SKIP = GOOD.replace(
    "/></testsuite", '><skipped message="no plugin"/></testcase></testsuite')


def count(tmp_path, capsys, texts, suites):
    for suite, text in texts.items():
        (tmp_path / suite).mkdir()
        (tmp_path / suite / "a.xml").write_text(text)
    code = count_results.main(tmp_path, suites)
    return code, capsys.readouterr().out.splitlines()


def test_all_suites__are_counted_in_the_last_line(tmp_path, capsys):
    code, lines = count(tmp_path, capsys, {"c": GOOD, "p": SKIP},
                        ["c=0", "p=0"])
    assert (code, lines[-1]) == (0, "1 passed, 0 failed, 1 skipped")
    assert "SKIPPED p (1): no plugin" in lines


@pytest.mark.parametrize("texts, suites", [
    ({"c": BAD}, ["c=1"]),
    ({"c": GOOD}, ["c=139"]),
    ({"c": GOOD}, ["c=0", "gone=0"]),
    ({"c": GOOD, "p": "<testsuites><tes"}, ["c=0", "p=0"]),
])
def test_a_failed_crashed_or_silent_suite__counts_as_failed(
        tmp_path, capsys, texts, suites):
    code, lines = count(tmp_path, capsys, texts, suites)
    assert code == 1
    assert re.fullmatch(r"[01] passed, 1 failed, 0 skipped", lines[-1])


def test_nothing_run__is_a_failure(tmp_path, capsys):
    code, lines = count(tmp_path, capsys, {}, [])
    assert (code, lines[-1]) == (1, "0 passed, 0 failed, 0 skipped")


def c_runner(tmp_path, body):
    """Runs the runner in a tree of one test executable, a shell script."""
    for folder in ("tests/base", "build/tests/base"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests/base/a_test.c").touch()
    script = tmp_path / "build/tests/base/a_test"
    script.write_text("#!/bin/sh\n" + body)
    script.chmod(0o755)
    subprocess.run([sys.executable, ROOT / "tools/run_c_tests.py", "--build",
                    "build", "--out", "out/c", "--suite", "c"], cwd=tmp_path)
    return count_results.read_suite(tmp_path / "out/c")


@pytest.mark.parametrize("body", ["kill -SEGV $$\n", "exit 3\n", "exit 0\n"])
def test_an_executable_without_results__is_one_failed_test(tmp_path, body):
    passed, failed, _ = c_runner(tmp_path, body)
    assert (passed, len(failed)) == (0, 1)


def test_a_crash_after_results__is_not_lost(tmp_path):
    passed, failed, _ = c_runner(
        tmp_path, f"echo '{GOOD}' >&2\nkill -ABRT $$\n")
    assert (passed, len(failed)) == (1, 1)


def test_skipped_c_tests__tell_what_was_printed(tmp_path):
    text = SKIP.replace(' message="no plugin"', "")
    _, _, skipped = c_runner(
        tmp_path, f"echo 'no plugin here'\necho '{text}' >&2\n")
    assert [reason for _, reason in skipped] == ["no plugin here"]


def test_two_groups_of_one_executable__are_both_read():
    assert len(run_c_tests.blocks(GOOD + "\nnoise\n" + BAD)) == 2


def test_torch__is_taken_only_in_its_cpu_build():
    def report(*names):
        return {"install": [{"metadata": {"name": n}} for n in names]}
    assert torch_refusal.refusal(report("torch", "sympy")) == ""
    assert "nvidia-cublas" in torch_refusal.refusal(
        report("torch", "nvidia-cublas"))
