# SPDX-License-Identifier: Apache-2.0
"""Bad input: one line that ends in a code, exit code 1, no partial file."""

import os
import re
import resource
import shutil
import subprocess

import numpy as np
import pytest

import cli_env

FILES = {
    "a missing file": ("none.npy", "FILE_OPEN"),
    "a folder": ("folder/.npy", "FILE_OPEN"),
    "a truncated .npy": ("cut.npy", "FILE_TRUNCATED"),
    "an empty .npy": ("empty.npy", "FILE_TRUNCATED"),
    "a .npy that is none": ("text.npy", "FILE_FORMAT"),
    "overlapping tensors": ("overlap.safetensors:w", "FILE_FORMAT"),
    "a truncated .safetensors": ("short.safetensors:w", "FILE_(TRUNC|FORM)"),
    "a name that is not there": ("two.safetensors:x", "NAME_UNKNOWN"),
    "no name": ("two.safetensors", "NAME_NEEDED"),
    "items of unknown type": ("v2.npy", "FILE_DTYPE"),
}
OUTPUTS = {
    "a folder": ("folder", "OUTPUT|PLACE"),
    "a folder with a slash": ("folder/", "OUTPUT|PLACE"),
    "a folder called as a file": ("out.npy", "OUTPUT"),
    "a folder that is not there": ("none/out.npy", "OUTPUT"),
    "a device file": ("full.npy", "OUTPUT"),
}
PROGRAMS = {
    "a missing program": ("none.mlir", "FILE_OPEN"),
    "a folder as program": ("folder", "FILE_OPEN"),
    "a program that does not parse": ("bad.mlir", "PROGRAM|PLUGIN"),
}
PLUGINS = {
    "a missing plugin": ("none.so", "PLUGIN_LOAD"),
    "half of a library": ("not_a_plugin.so", "PLUGIN_LOAD|NOT_A_PLUGIN"),
    "a text file": ("log.txt", "PLUGIN_LOAD|NOT_A_PLUGIN"),
    "a folder as plugin": ("folder", "PLUGIN_LOAD|NOT_A_PLUGIN"),
}
INPUTS = {
    "another shape": (["a.npy", "two.safetensors:b"], "SHAPE_MISMATCH"),
    "another dtype": (["a.npy", "wide.npy"], "DTYPE_MISMATCH"),
    "too few inputs": (["a.npy"], "ARITY"),
    "too many inputs": (["a.npy"] * 3, "ARITY"),
    "a device as input": (["a.npy", "host"], "PLACE"),
}


@pytest.fixture
def folder(tmp_path):
    cli_env.make_files(tmp_path)
    (tmp_path / "folder" / ".npy").mkdir()
    np.save(tmp_path / "wide.npy", np.zeros((2, 3)))
    return tmp_path


def refused(folder, code, *words, plugin_speaks=False):
    before = [p.name for p in folder.iterdir()]
    inside = {p: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    done = cli_env.run(folder, *words)
    assert done.code == 1, done
    assert done.out == b""
    lines = [line for line in done.lines if line.startswith("isthmus: ")] \
        if plugin_speaks else done.lines
    assert len(lines) == 1, done.err
    needs = "" if plugin_speaks else "; needs .+"  # a plugin's own words
    assert re.fullmatch(rf"isthmus: {words[0]}: .+{needs} "
                        rf"\[IST_ERR_(?:{code})\w* \d+\]", lines[0]), lines
    assert cli_env.left_over(folder, before) == []
    for path, data in inside.items():
        assert path.read_bytes() == data
    return lines[0]


@pytest.mark.parametrize("place, code", FILES.values(), ids=FILES.keys())
def test_a_bad_source__is_one_line_and_no_file(place, code, folder):
    line = refused(folder, code, "move", place, "out.npy")
    assert place.split(":")[0] in line


def test_a_file_of_many_tensors__lists_their_names(folder):
    line = refused(folder, "NAME_NEEDED", "move", "two.safetensors", "b.npy")
    assert re.search(r"\bw\b", line) and re.search(r"\bb\b", line)


@pytest.mark.parametrize("target, code", OUTPUTS.values(), ids=OUTPUTS.keys())
def test_a_bad_target__is_one_line_and_no_file(target, code, folder):
    (folder / "out.npy").mkdir()
    (folder / "full.npy").symlink_to("/dev/full")
    before = sorted((folder / "folder").iterdir())
    refused(folder, code, "move", "a.npy", target)
    assert sorted((folder / "folder").iterdir()) == before


def test_a_failed_move__leaves_the_old_target_as_it_was(folder):
    (folder / "out.npy").write_bytes(b"precious")
    refused(folder, "FILE_TRUNCATED", "move", "cut.npy", "out.npy")
    assert (folder / "out.npy").read_bytes() == b"precious"


@pytest.mark.parametrize("target", ["out.npy", "out.safetensors"])
def test_a_full_disk__is_one_line_and_no_file(target, folder):
    np.save(folder / "big.npy", np.zeros(1 << 18, np.float32))
    before = [p.name for p in folder.iterdir()]
    done = cli_env.run(folder, "move", "big.npy", target, preexec_fn=lambda: (
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))))
    assert (done.code, done.out) == (1, b"")
    assert len(done.lines) == 1
    assert done.lines[0].endswith("[IST_ERR_DISK_FULL 404]")
    assert cli_env.left_over(folder, before) == []


def test_a_full_file_system__is_one_line_and_no_file(folder):
    disk = folder / "disk"
    disk.mkdir()
    np.save(folder / "big.npy", np.zeros(1 << 18, np.float32))
    script = ("mount -t tmpfs -o size=64k none disk || exit 77;"
              '"$0" move big.npy disk/out.npy; code=$?; ls -A disk; exit $code')
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not here")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script,
                           str(cli_env.COMMAND)], cwd=folder,
                          capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"isthmus: move: .*\[IST_ERR_DISK_FULL 404\]\n",
                        done.stderr)


@pytest.mark.parametrize("path, code", PLUGINS.values(), ids=PLUGINS.keys())
@pytest.mark.parametrize("verb", ["probe", "move", "run"])
def test_a_file_that_is_no_plugin__is_one_line(verb, path, code, folder):
    words = {"probe": ["probe", path],
             "move": ["move", "a.npy", f"pjrt:{path}"],
             "run": ["run", "add.mlir", "--plugin", path, "a.npy", "a.npy",
                     "-o", "c.npy"]}[verb]
    refused(folder, code, *words)


@pytest.mark.parametrize("place", ["o.safetensors", "o.npy", "-", "host"])
def test_outputs_of_a_program_without_any__are_refused(place, folder):
    (folder / "none.mlir").write_text(
        "module @none { func.func public @main(%arg0: tensor<2x3xf32>) "
        "{ return } }")
    line = refused(folder, "ARITY", "run", "none.mlir", "a.npy", "--plugin",
                   cli_env.plugin(), "-o", place, plugin_speaks=True)
    assert "needs none: none.mlir has no output" in line
    done = cli_env.run(folder, "run", "none.mlir", "a.npy", "--plugin",
                       cli_env.plugin())
    assert done.code == 0


@pytest.mark.parametrize("words", [
    ["probe", "pipe.so"], ["doctor", "-p", "pipe.so"],
    ["move", "a.npy", "pjrt:pipe.so"],
    ["run", "add.mlir", "--plugin", "pipe.so", "a.npy", "a.npy"],
], ids=lambda words: words[0])
def test_a_pipe_as_plugin__is_refused_with_nothing_read(words, folder):
    """The pipe holds bytes, so that a command that reads it does not hang."""
    os.mkfifo(folder / "pipe.so")
    end = os.open(folder / "pipe.so", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(end, b"\x7fELF" * 1024)
        if words[0] == "doctor":
            done = cli_env.run(folder, *words)
            assert b"IST_ERR_NOT_A_PLUGIN" in done.out
        else:
            refused(folder, "NOT_A_PLUGIN", *words)
        assert len(os.read(end, 8192)) == 4096
    finally:
        os.close(end)


def test_a_library_without_the_function__is_no_plugin(folder):
    library = subprocess.run(["cc", "-print-file-name=libm.so.6"],
                             capture_output=True, text=True).stdout.strip()
    if "/" not in library:
        pytest.skip("no shared library was found to try")
    refused(folder, "NOT_A_PLUGIN", "probe", library)


@pytest.mark.parametrize("rules", ["minor=50", "major=1"])
def test_a_plugin_of_another_version__is_one_line(rules, folder, monkeypatch):
    path = cli_env.lying()
    monkeypatch.setenv("LYING_PJRT_RULES", rules)
    refused(folder, "PLUGIN_VERSION", "probe", path)


@pytest.mark.parametrize("name", ["P1", "P2", "P3"])
@pytest.mark.parametrize("program, code", PROGRAMS.values(),
                         ids=PROGRAMS.keys())
def test_a_bad_program__is_one_line_and_no_file(program, code, name, folder):
    path = cli_env.plugin(name)
    refused(folder, code, "run", program, "--plugin", path, "a.npy", "a.npy",
            "-o", "c.npy", plugin_speaks=True)


@pytest.mark.parametrize("places, code", INPUTS.values(), ids=INPUTS.keys())
def test_wrong_inputs__are_one_line_and_no_file(places, code, folder):
    path = cli_env.plugin()
    refused(folder, code, "run", "add.mlir", "--plugin", path, *places,
            "-o", "c.npy", plugin_speaks=True)


@pytest.mark.parametrize("target", ["folder", "folder/", "none/c.npy",
                                    "template", "c.txt"])
def test_a_bad_output_of_run__is_one_line_and_no_file(target, folder):
    path = cli_env.plugin()
    refused(folder, "OUTPUT|PLACE", "run", "add.mlir", "--plugin", path,
            "a.npy", "a.npy", "-o", target, plugin_speaks=True)


def test_the_wrong_number_of_outputs__is_one_line_and_no_file(folder):
    path = cli_env.plugin()
    refused(folder, "ARITY", "run", "add.mlir", "--plugin", path, "a.npy",
            "a.npy", "-o", "c.npy", "d.npy", plugin_speaks=True)


def test_json__tells_an_error_as_a_document_too(folder):
    import json
    done = cli_env.run(folder, "move", "--json", "none.npy", "b.npy")
    error = json.loads(done.out)["error"]
    assert (done.code, error["name"]) == (1, "IST_ERR_FILE_OPEN")
    assert error["message"] in done.err.decode()
