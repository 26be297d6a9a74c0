# SPDX-License-Identifier: Apache-2.0
"""A wrong command line: one line, exit code 2, and nothing done."""

import pytest

import cli_env

WRONG = {
    "no verb": [],
    "an unknown verb": ["teleport"],
    "an unknown option before the verb": ["--loud"],
    "an unknown option": ["move", "--loud", "a.npy", "b.npy"],
    "an unknown letter": ["move", "-x", "a.npy", "b.npy"],
    "an option of another verb": ["probe", "--copy", "auto", "p.so"],
    "an argument missing": ["move", "a.npy", "b.npy", "--copy"],
    "an argument too much": ["move", "--json=yes", "a.npy", "b.npy"],
    "a word that is none of three": ["move", "-c", "maybe", "a.npy", "b.npy"],
    "one operand": ["move", "a.npy"],
    "three operands": ["move", "a.npy", "b.npy", "c.npy"],
    "no plugin": ["probe"],
    "no program": ["run", "--plugin", "p.so"],
    "one end of a route": ["route", "host"],
    "nothing to explain": ["explain"],
    "an operand for doctor": ["doctor", "p.so"],
    "an option without a value": ["probe", "-O", "cpu_device_count", "p.so"],
    "an option of an unknown type": ["probe", "-O", "a:long=1", "p.so"],
    "an option that is no integer": ["probe", "-O", "a:int=x", "p.so"],
    "an option that is too large": ["probe", "-O", "a:int=1" + 30 * "0", "p"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_command_line__is_one_line_and_two(words, tmp_path):
    before = sorted(p.name for p in cli_env.make_files(tmp_path).iterdir())
    done = cli_env.run(tmp_path, *words)
    assert (done.code, done.out) == (2, b"")
    assert len(done.lines) == 1
    assert done.lines[0].startswith("isthmus: ")
    assert done.lines[0].endswith("--help")
    assert cli_env.left_over(tmp_path, before) == []


def test_after_two_dashes__a_name_may_look_like_an_option(tmp_path):
    cli_env.make_files(tmp_path)
    done = cli_env.run(tmp_path, "move", "--", "-dash.npy", "-out.npy")
    assert (done.code, done.err) == (0, b"")
    assert (tmp_path / "-out.npy").read_bytes() == (
        tmp_path / "-dash.npy").read_bytes()


def test_options__may_follow_operands(tmp_path):
    cli_env.make_files(tmp_path)
    done = cli_env.run(tmp_path, "route", "a.npy", "host", "--json")
    assert done.code == 0
    assert done.out.startswith(b"{")


def test_control_characters__do_not_reach_the_terminal(tmp_path):
    done = cli_env.run(tmp_path, "move", "bad\n\x1b[31m.npy", "b.npy")
    assert done.code == 1
    assert len(done.lines) == 1
    assert b"\x1b" not in done.err


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["move", "-V"]])
def test_version__is_the_one_of_the_header(words, tmp_path):
    text = (cli_env.ROOT / "include/isthmus/version.h").read_text()
    done = cli_env.run(tmp_path, *words)
    assert done.code == 0
    assert f'"{done.out.decode().split()[1]}"' in text
