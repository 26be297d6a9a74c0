# SPDX-License-Identifier: Apache-2.0
"""What the command prints equals its golden files."""

import pytest

import cli_env
import cli_golden


@pytest.mark.parametrize("path", sorted(cli_golden.GOLDEN.glob("*.txt")),
                         ids=lambda path: path.stem)
def test_the_command__prints_what_its_golden_file_holds(path, tmp_path):
    golden = cli_golden.read(path)
    assert golden.runs
    missing = cli_golden.missing(golden)
    if missing:
        pytest.skip("no plugin for " + ", ".join(missing))
    outcomes = []
    for number, run in enumerate(golden.runs):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes.append(cli_golden.do(run, cli_env.make_files(folder)))
    if cli_golden.WRITE:
        cli_golden.write(path, golden, outcomes)
    for run, outcome in zip(golden.runs, outcomes):
        assert outcome == run.expected or cli_golden.WRITE, run.line


def test_the_masks__leave_other_numbers_alone():
    text = "moved 24 bytes, 0.1.01 and 10.1.0, run 3 ms"
    assert cli_golden.mask(text) == text


def test_the_masks__hide_what_machines_differ_in():
    text = f"isthmus {cli_golden.version()}\ntime  run 1.25 ms\n"
    assert cli_golden.mask(text) == "isthmus $VERSION\ntime  run # ms\n"
