# SPDX-License-Identifier: Apache-2.0
"""Standard streams, terminals, signals: what surrounds the command."""

import io
import json
import os
import re
import pty
import signal
import subprocess

import numpy as np
import pytest

import cli_env

MANY = np.arange(1 << 20, dtype=np.float32)


@pytest.fixture
def folder(tmp_path):
    return cli_env.make_files(tmp_path)


def start(folder, *words, **more):
    return subprocess.Popen([str(cli_env.COMMAND), *map(str, words)],
                            cwd=folder, **more)


def wait_for_map(process, name):
    """Returns once the process has mapped the file, or has ended."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/maps") as maps:
            if name in maps.read():
                return
        os.sched_yield()


# --------------------------------------------------------------- streams --

def test_a_tensor__goes_through_standard_input_and_output(folder):
    data = (folder / "fortran.npy").read_bytes()
    done = cli_env.run(folder, "move", "-", "-", "--via", "template",
                       data=data)
    assert done.code == 0
    np.testing.assert_array_equal(np.load(io.BytesIO(done.out)),
                                  np.load(folder / "fortran.npy"))
    assert done.err.startswith(b"copy  - -> template\n")


def test_the_receipt__is_json_on_stderr_when_stdout_is_a_tensor(folder):
    done = cli_env.run(folder, "move", "--json", "a.npy", "-")
    assert done.code == 0
    assert json.loads(done.err)["written"] is True
    np.testing.assert_array_equal(np.load(io.BytesIO(done.out)),
                                  np.load(folder / "a.npy"))


def test_an_error__is_one_line_of_json_when_stdout_is_a_tensor(folder):
    done = cli_env.run(folder, "move", "--json", "none.npy", "-")
    assert (done.code, done.out) == (1, b"")
    assert json.loads(done.err)["error"]["name"] == "IST_ERR_FILE_OPEN"


@pytest.mark.parametrize("words", [
    ["--help"], ["--version"], ["doctor"], ["route", "host", "host"],
    ["explain", "104"], ["move", "a.npy", "host"], ["move", "a.npy", "-"]],
    ids=lambda words: words[0].strip("-"))
def test_full_standard_output__is_one_line_and_one(words, folder):
    with open("/dev/full", "wb") as full:
        done = cli_env.run(folder, *words, stdout=full)
    assert done.code == 1
    if words[-1] == "-":
        assert b"[IST_ERR_DISK_FULL 404]" in done.err
    else:
        assert len(done.lines) == 1
        assert done.lines[0].endswith("[IST_ERR_DISK_FULL 404]")


@pytest.mark.parametrize("words", [["doctor"], ["move", "a.npy", "-"]])
def test_closed_standard_output__is_one_line_and_one(words, folder):
    done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', cli_env.COMMAND,
                           *words], cwd=folder, capture_output=True)
    assert done.returncode == 1
    assert b"[IST_ERR_IO 402]" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_closed_standard_output__is_not_taken_for_a_file(folder):
    done = subprocess.run(["sh", "-c", '"$0" "$@" >&- 2>&-', cli_env.COMMAND,
                           "move", "a.npy", "b.npy"], cwd=folder)
    assert done.returncode == 1
    assert (folder / "b.npy").read_bytes() == (folder / "a.npy").read_bytes()


def test_closed_standard_input__is_an_error_only_where_it_is_read(folder):
    script = '"$0" "$@" <&-'
    shell = ["sh", "-c", script, cli_env.COMMAND]
    done = subprocess.run([*shell, "move", "a.npy", "b.npy"], cwd=folder,
                          capture_output=True)
    assert done.returncode == 0
    done = subprocess.run([*shell, "move", "-", "b.npy"], cwd=folder,
                          capture_output=True)
    assert done.returncode == 1
    assert b"standard input could not be read" in done.stderr


def test_a_reader_that_went_away__is_no_message(folder):
    read, write = os.pipe()
    os.close(read)
    done = cli_env.run(folder, "doctor", stdout=write)
    os.close(write)
    assert (done.code, done.err) == (1, b"")


def test_nothing_is_left_in_the_temporary_folder(folder):
    scratch = folder / "tmp"
    scratch.mkdir()
    env = {"TMPDIR": str(scratch)}
    for data in ((folder / "a.npy").read_bytes(), b"rubbish"):
        cli_env.run(folder, "move", "-", "-", data=data, env=env)
        assert os.listdir(scratch) == []


# -------------------------------------------------------------- terminal --

def on_terminal(folder, *words, stream="stdout", env=None):
    """What the command writes to a terminal on this stream."""
    master, slave = pty.openpty()
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    process = start(folder, *words, **{stream: slave, other: subprocess.DEVNULL},
                    env={**os.environ, "TERM": "xterm", **(env or {})})
    os.close(slave)
    parts = []
    while True:
        try:
            parts.append(os.read(master, 65536))
        except OSError:  # the terminal's other end is closed
            break
        if not parts[-1]:
            break
    os.close(master)
    assert process.wait() == 0
    return b"".join(parts)


def test_colour__is_for_terminals_only(folder):
    words = ["route", "a.npy", "host"]
    assert b"\x1b[1m" in on_terminal(folder, *words)
    assert b"\x1b" not in on_terminal(folder, *words, env={"NO_COLOR": "1"})
    assert b"\x1b" not in on_terminal(folder, *words, env={"TERM": "dumb"})
    assert b"\x1b" not in on_terminal(folder, *words, "--json")
    assert b"\x1b" not in cli_env.run(folder, *words).out


def test_progress__is_shown_on_a_terminal_and_taken_away(folder):
    words = ["move", "a.npy", "b.npy"]
    shown = on_terminal(folder, *words, stream="stderr")
    assert b"writing b.npy" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert cli_env.run(folder, *words).err == b""


def test_progress__counts_a_long_copy(folder):
    turned = np.zeros((2048, 3072), "float32")[:, ::-1]
    np.save(folder / "long.npy", np.asfortranarray(turned))
    words = ["move", "long.npy", "long.safetensors"]
    shown = on_terminal(folder, *words, stream="stderr",
                        env={"ISTHMUS_THREADS": "2"})
    percents = [int(n) for n in re.findall(rb": (\d+) %", shown)]
    assert len(percents) > 10 and percents == sorted(set(percents))
    assert percents[-1] >= 99
    assert shown.endswith(b"\r\x1b[K")


@pytest.mark.parametrize("text", ["0", "some", "257", "1x"])
def test_threads__that_are_no_number_are_refused(folder, text):
    ended = cli_env.run(folder, "move", "a.npy", "b.npy",
                        env={"ISTHMUS_THREADS": text})
    assert ended.code == 1 and len(ended.lines) == 1
    assert "option ISTHMUS_THREADS cannot be set" in ended.lines[0]
    assert not (folder / "b.npy").exists()


# --------------------------------------------------------------- signals --

def test_a_map_cut_short__is_one_line_and_one(folder):
    np.save(folder / "cut_me.npy", MANY)
    path = cli_env.plugin()
    (folder / "double.mlir").write_text("""module @double {
  func.func public @main(%arg0: tensor<1048576xf32>, %arg1: tensor<2x3xf32>)
      -> tensor<1048576xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<1048576xf32>
    return %0 : tensor<1048576xf32>
  }
}
""")
    before = os.listdir(folder)
    process = start(folder, "run", "double.mlir", "--plugin", path,
                    "cut_me.npy", "-", "-o", "out.npy", stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_map(process, "cut_me.npy")
    os.truncate(folder / "cut_me.npy", 4096)
    out, err = process.communicate((folder / "a.npy").read_bytes())
    assert (process.returncode, out) == (1, b"")
    assert err.decode().splitlines()[-1] == (
        "isthmus: a mapped file could not be read: another process cut it "
        "short meanwhile; needs files that keep their size "
        "[IST_ERR_FILE_TRUNCATED 211]")
    assert cli_env.left_over(folder, before) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal__ends_the_command_and_leaves_nothing(number, folder):
    scratch = folder / "tmp"
    scratch.mkdir()
    process = start(folder, "move", "-", "b.npy", stdin=subprocess.PIPE,
                    env={**os.environ, "TMPDIR": str(scratch)})
    process.stdin.write((folder / "a.npy").read_bytes())
    process.stdin.flush()
    while not any(scratch.glob("*/stream.npy")) and process.poll() is None:
        os.sched_yield()
    process.send_signal(number)
    assert process.wait() == -number
    process.stdin.close()
    assert os.listdir(scratch) == []
    assert not (folder / "b.npy").exists()


@pytest.fixture(scope="module")
def meddler(tmp_path_factory):
    return cli_env.preload(tmp_path_factory.mktemp("shim"), "meddling_calls")


@pytest.mark.parametrize("target", ["out.npy", "out.safetensors"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_map_cut_short_while_it_is_written__leaves_nothing(order, target,
                                                             folder, meddler):
    np.save(folder / "cut_me.npy", np.asarray(MANY.reshape(1024, 1024),
                                              order=order))
    before = os.listdir(folder)
    done = cli_env.run(folder, "move", "cut_me.npy", target,
                       env={"LD_PRELOAD": meddler, "CUT": "cut_me.npy"})
    assert (done.code, done.out) == (1, b"")
    assert len(done.lines) == 1
    assert "cut" in done.lines[0] and "short" in done.lines[0]
    assert done.lines[0].endswith("[IST_ERR_FILE_TRUNCATED 211]")
    assert cli_env.left_over(folder, before) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM,
                                    signal.SIGHUP, signal.SIGBUS])
@pytest.mark.parametrize("target", ["out.npy", "-"])
def test_a_signal_before_the_end__leaves_nothing(target, number, folder,
                                                 meddler):
    scratch = folder / "tmp"
    scratch.mkdir()
    before = os.listdir(folder)
    done = cli_env.run(folder, "move", "a.npy", target, env={
        "LD_PRELOAD": meddler, "STOP": str(int(number)),
        "TMPDIR": str(scratch)})
    assert done.code == (1 if number == signal.SIGBUS else -number)
    assert done.out == b""
    assert cli_env.left_over(folder, before) == []
    assert os.listdir(scratch) == []


def test_an_ignored_signal__stays_ignored(folder, meddler):
    done = cli_env.run(folder, "move", "a.npy", "out.npy", env={
        "LD_PRELOAD": meddler, "STOP": str(int(signal.SIGHUP))},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert (done.code, done.err) == (0, b"")
    assert (folder / "out.npy").exists()


def test_names_with_hash_and_colon__are_escaped(folder):
    data = (folder / "a.npy").read_bytes()
    (folder / "a#1.npy").write_bytes(data)
    for words in (["a#1.npy", "b%23%3A2.npy"], ["a%231.npy", "c:d.npy"]):
        done = cli_env.run(folder, "move", *words)
        assert (done.code, done.err) == (0, b"")
    assert (folder / "b#:2.npy").read_bytes() == data
    assert (folder / "c:d.npy").read_bytes() == data
