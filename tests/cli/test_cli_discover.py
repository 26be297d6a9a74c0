# SPDX-License-Identifier: Apache-2.0
"""Plugins are found where packages are installed, by looking only, and the
Python package and the command find the same."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import cli_env

VARIABLE = "PJRT_NAMES_AND_LIBRARY_PATHS"
SCRIPT = """
import json, warnings, isthmus
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    found = isthmus.plugins()
print(json.dumps([[list(p) for p in found], [str(w.message) for w in seen]]))
"""


def put(path, source):
    """A copy of a plugin, or text, at a path of a made-up package."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if source is None:
        shutil.copy(cli_env.lying(), path)
    else:
        path.write_text(source)
    return str(path)


def environment(*sites, **more):
    return {"ISTHMUS_SITE_PACKAGES": ":".join(map(str, sites)), **more}


def by_command(folder, env):
    """What doctor lists: good ones as (name, path, found_by), and the rest."""
    done = cli_env.run(folder, "doctor", "--json", env=env)
    assert done.code == 0, done.err
    entries = json.loads(done.out)["plugins"]
    good = [(e["name"], e["path"], e["found_by"]) for e in entries
            if e["problem"] is None]
    return good, [e for e in entries if e["problem"] is not None]


def by_python(folder, env):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=folder, text=True,
                          env={**os.environ, **env}, capture_output=True)
    assert done.returncode == 0, done.stderr
    good, warned = json.loads(done.stdout)
    return [tuple(p) for p in good], warned


def both(folder, env):
    env = {VARIABLE: "", **env}
    good, broken = by_command(folder, env)
    same, warned = by_python(folder, env)
    assert same == good
    assert len(warned) == len(broken)
    for text, entry in zip(warned, broken):
        assert entry["problem"] in text and entry["name"] in text
    return good, broken


def by_environment(folder, prefix):
    """The paths that the command finds in the packages of VIRTUAL_ENV."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("ISTHMUS_SITE_PACKAGES", VARIABLE)}
    done = subprocess.run([str(cli_env.COMMAND), "doctor", "--json"], cwd=folder,
                          env={**env, "VIRTUAL_ENV": str(prefix)},
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return [entry["path"] for entry in json.loads(done.stdout)["plugins"]]


@pytest.mark.parametrize("group", ["jax_plugins", "xla_plugins"])
def test_namespace_package_is_looked_through(tmp_path, group):
    path = put(tmp_path / group / "mine" / "plugin.so", None)
    put(tmp_path / group / "mine" / "helper.so", "no library")
    put(tmp_path / group / "__pycache__" / "x.pyc", "")
    assert both(tmp_path, environment(tmp_path)) == ([("mine", path, group)], [])


@pytest.mark.parametrize("name", ["env[12]", "env*", "env?", "env\\1"])
def test_folder_with_the_signs_of_a_pattern_is_itself_only(tmp_path, name):
    folder, other = tmp_path / name, tmp_path / "env1"
    put(other / "jax_plugins" / "wrong" / "plugin.so", None)
    put(other / "lib" / "python3.11" / "site-packages" / "jax_plugins" / "wrong"
        / "plugin.so", None)
    paths = [put(folder / "jax_plugins" / "mine" / "plugin.so", None),
             put(folder / "x" / "pjrt_x.so", None)]
    put(folder / "x-1.dist-info" / "METADATA", "Name: x\nVersion: 1\n")
    put(folder / "x-1.dist-info" / "RECORD", "x/pjrt_x.so,,\n")
    good, broken = both(tmp_path, environment(folder))
    assert [path for _, path, _ in good] == paths and broken == []
    path = put(folder / "lib" / "python3.11" / "site-packages" / "jax_plugins"
               / "mine" / "plugin.so", None)
    assert by_environment(tmp_path, folder) == [path]


@pytest.mark.parametrize("target", ["a.module", "a.module:start", "a.module.file"])
def test_entry_point_leads_to_its_module(tmp_path, target):
    path = put(tmp_path / "a" / "module" / "plugin.so", None)
    put(tmp_path / "dist-1.0.dist-info" / "METADATA", "Name: dist\nVersion: 1.0\n")
    put(tmp_path / "dist-1.0.dist-info" / "entry_points.txt",
        f"[console_scripts]\nx = a.b:c\n\n[jax_plugins]\nmine = {target}\n")
    assert both(tmp_path, environment(tmp_path)) == (
        [("mine", path, "entry point jax_plugins")], [])


def test_installed_file_is_known_by_its_name(tmp_path):
    path = put(tmp_path / "whoever" / "libpjrt_x.so", None)
    put(tmp_path / "whoever" / "libother.so", None)
    put(tmp_path / "whoever" / "fake_pjrt.so", "no library")
    put(tmp_path / "who_ever-1.0.dist-info" / "METADATA",
        "Name: who-ever\nVersion: 1.0\n")
    put(tmp_path / "who_ever-1.0.dist-info" / "RECORD",
        "whoever/libpjrt_x.so,sha256=0,1\nwhoever/libother.so,,\n"
        "whoever/fake_pjrt.so,,\n")
    assert both(tmp_path, environment(tmp_path)) == (
        [("who_ever", path, "files of who_ever")], [])


def test_environment_names_paths_and_comes_first(tmp_path):
    path = put(tmp_path / "site" / "jax_plugins" / "mine" / "p.so", None)
    other = put(tmp_path / "other.so", None)
    env = environment(tmp_path / "site", **{VARIABLE: f"b:{other},a:{path}"})
    assert both(tmp_path, env)[0] == [("b", other, VARIABLE), ("a", path, VARIABLE)]


def test_one_file_found_twice_is_listed_once(tmp_path):
    path = put(tmp_path / "xla_plugins" / "mine" / "pjrt.so", None)
    put(tmp_path / "mine-1.dist-info" / "METADATA", "Name: mine\nVersion: 1\n")
    put(tmp_path / "mine-1.dist-info" / "entry_points.txt",
        "[xla_plugins]\nname = xla_plugins.mine\n")
    put(tmp_path / "mine-1.dist-info" / "RECORD", "xla_plugins/mine/pjrt.so,,\n")
    os.symlink(tmp_path / "xla_plugins", tmp_path / "jax_plugins")
    good, broken = both(tmp_path, environment(tmp_path, tmp_path))
    assert [p[0] for p in good] == ["mine"] and broken == []
    assert os.path.samefile(good[0][1], path)


def test_broken_entries_are_told_and_do_no_harm(tmp_path):
    path = put(tmp_path / "jax_plugins" / "good" / "p.so", None)
    put(tmp_path / "jax_plugins" / "empty" / "__init__.py", "")
    text = put(tmp_path / "text.so", "text")
    put(tmp_path / "d-1.dist-info" / "METADATA", "Name: d\nVersion: 1\n")
    put(tmp_path / "d-1.dist-info" / "entry_points.txt",
        "[jax_plugins]\ngone = nowhere.at_all\n")
    env = environment(tmp_path, "/nowhere",
                      **{VARIABLE: f"text:{text},gone:/nowhere.so,odd"})
    good, broken = both(tmp_path, env)
    assert good == [("good", path, "jax_plugins")]
    assert {e["name"] for e in broken} == {"text", "gone", "odd", "empty"}


@pytest.mark.parametrize("file", ["entry_points.txt", "RECORD"])
@pytest.mark.parametrize("kind", ["pipe", "device", "huge", "folder"])
def test_what_is_no_file_of_a_package_is_told_and_not_read(tmp_path, file, kind):
    path = put(tmp_path / "jax_plugins" / "good" / "p.so", None)
    odd = tmp_path / "odd-1.dist-info" / file
    odd.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "device":
        odd.symlink_to("/dev/zero")
    elif kind == "folder":
        odd.mkdir()
    else:
        with odd.open("wb") as opened:
            opened.truncate(1 << 40)
    good, broken = both(tmp_path, environment(tmp_path))
    assert good == [("good", path, "jax_plugins")]
    assert [e["name"] for e in broken] == ["odd"]
    assert "8 MiB" in broken[0]["problem"]


@pytest.mark.parametrize("file, text", [
    ("entry_points.txt", b"\xff"), ("RECORD", b"\xff,,"), ("RECORD", b"a,b,c,d"),
    ("RECORD", b"x_pjrt.so,,no number"), ("RECORD", b"a\0_pjrt.so,,"),
    ("entry_points.txt", b"[jax_plugins]\nx="),
    ("entry_points.txt", b"[jax_plugins]\nno pair\n= y\nx = :z"),
    ("entry_points.txt", b"[console_scripts]\nbad")])
def test_malformed_package_hides_no_other_one(tmp_path, file, text):
    path = put(tmp_path / "pjrt_good.so", None)
    put(tmp_path / "a-1.dist-info" / file, "")
    (tmp_path / "a-1.dist-info" / file).write_bytes(text)
    put(tmp_path / "b-1.dist-info" / "RECORD", "pjrt_good.so,,\n")
    good, broken = both(tmp_path, environment(tmp_path))
    assert good == [("b", path, "files of b")] and broken == []


def test_broken_plugins_hide_no_good_one(tmp_path):
    for i in range(100):
        (tmp_path / "jax_plugins" / f"a{i}").mkdir(parents=True)
    path = put(tmp_path / "jax_plugins" / "good" / "p.so", None)
    env = {VARIABLE: "", **environment(tmp_path)}
    assert by_command(tmp_path, env)[0] == [("good", path, "jax_plugins")]
    done = cli_env.run(tmp_path, "doctor", env=env)
    assert b"and 36 more" in done.out
    files(tmp_path)
    assert run(tmp_path, env).code == 0


def test_virtual_environment_and_python_on_the_path_are_found(tmp_path):
    site = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    path = put(site / "jax_plugins" / "mine" / "p.so", None)
    python = tmp_path / "venv" / "bin" / "python3"
    put(python, "#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    put(tmp_path / "venv" / "pyvenv.cfg", "")
    for more in ({"VIRTUAL_ENV": str(tmp_path / "venv")},
                 {"VIRTUAL_ENV": "", "PATH": f"/nowhere:{python.parent}"}):
        surroundings = {k: v for k, v in os.environ.items()
                        if k not in ("ISTHMUS_SITE_PACKAGES", VARIABLE)}
        done = subprocess.run([str(cli_env.COMMAND), "doctor", "--json"],
                              env={**surroundings, **more}, capture_output=True)
        assert [p["path"] for p in json.loads(done.stdout)["plugins"]] == [path]


# ------------------------------------------------------------------ run --

def files(folder):
    """A program that the lying plugin reads: x + 1 of float32[2,3]."""
    (folder / "add.mlir").write_text("lying.add_one_f32 11 2 3")
    np.save(folder / "a.npy", np.ones((2, 3), np.float32))


def run(folder, env, *words):
    return cli_env.run(folder, "run", "add.mlir", "a.npy", *words,
                       env={"LYING_PJRT_RULES": "addressable=1", **env})


def test_run_takes_the_one_plugin_that_is_installed(tmp_path):
    path = put(tmp_path / "site" / "jax_plugins" / "mine" / "p.so", None)
    files(tmp_path)
    done = run(tmp_path, environment(tmp_path / "site"), "-o", "b.npy")
    assert done.code == 0, done.err
    assert f"plugin pjrt:{path}, found by jax_plugins" in done.out.decode()
    assert (np.load(tmp_path / "b.npy") == 2).all()


def test_run_asks_among_several_and_takes_a_name(tmp_path):
    for name in ("one", "two"):
        put(tmp_path / "site" / "jax_plugins" / name / "p.so", None)
    files(tmp_path)
    env = environment(tmp_path / "site")
    done = run(tmp_path, env)
    assert done.code == 1
    assert b"no plugin was named, and 2 were found (one, two)" in done.err
    for name in ("two", "pjrt:two", "two#1"):
        assert run(tmp_path, env, "--plugin", name).code == 0
    done = run(tmp_path, env, "--plugin", "three")
    assert done.code == 1 and b"three" in done.err


def test_run_prefers_the_one_that_the_environment_names(tmp_path):
    put(tmp_path / "site" / "jax_plugins" / "one" / "p.so", None)
    other = put(tmp_path / "other.so", None)
    files(tmp_path)
    done = run(tmp_path, environment(tmp_path / "site",
                                     **{VARIABLE: f"it:{other}"}))
    assert done.code == 0 and other in done.out.decode()


def test_run_without_any_plugin_says_what_it_needs(tmp_path):
    files(tmp_path)
    done = run(tmp_path, environment())
    assert done.code == 1
    assert "no plugin was found; needs the path" in done.lines[0]
    assert done.lines[0].endswith("[IST_ERR_NO_BACKEND 301]")


def test_open_takes_a_name_or_the_only_one(tmp_path):
    put(tmp_path / "jax_plugins" / "mine" / "p.so", None)
    script = ("import isthmus\n"
              "assert isthmus.open('pjrt').platform == 'lying'\n"
              "assert isthmus.open('pjrt:mine').platform == 'lying'\n"
              "assert isthmus.open('pjrt:mine#1').devices\n"
              "try: isthmus.open('pjrt:mine#7')\n"
              "except isthmus.Error as e: print(e.code)\n")
    done = subprocess.run(
        [sys.executable, "-c", script], text=True, capture_output=True,
        env={**os.environ, **environment(tmp_path), VARIABLE: "",
             "LYING_PJRT_RULES": "addressable=1"})
    assert (done.stdout, done.stderr) == ("307\n", "")


def test_listing_loads_and_imports_nothing(tmp_path):
    crashing = cli_env.BUILD / "crashing_pjrt.so"
    if not crashing.exists():
        pytest.skip("the crashing plugin was not built")
    folder = tmp_path / "jax_plugins" / "bad"
    put(folder / "__init__.py", "raise SystemExit(9)\n")
    shutil.copy(crashing, folder / "p.so")
    env = environment(tmp_path, CRASHING_PJRT="abort load")
    assert [p[0] for p in both(tmp_path, env)[0]] == ["bad"]


def test_the_package_finds_what_its_own_command_finds():
    """The wheels that are installed here."""
    if not os.environ.get("ISTHMUS_P2"):
        pytest.skip("ISTHMUS_P2 names no plugin")
    site = pathlib.Path(os.environ["ISTHMUS_P2"]).parents[2]
    good, _ = both(site, environment(site))
    paths = {os.path.realpath(p[1]) for p in good}
    wanted = [os.environ.get("ISTHMUS_" + k) for k in ("P1", "P2", "P3")]
    assert {os.path.realpath(p) for p in wanted if p} <= paths
