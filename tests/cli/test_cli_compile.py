# SPDX-License-Identifier: Apache-2.0
"""isthmus compile writes what isthmus run takes; programs are kept."""

import cli_env
import numpy as np
import pytest


@pytest.fixture(name="folder")
def _folder(tmp_path):
    (tmp_path / "add.mlir").write_text(cli_env.ADD)
    np.save(tmp_path / "a.npy", np.arange(6, dtype="f4").reshape(2, 3))
    return tmp_path


def run(folder, *words, **more):
    done = cli_env.run(folder, *words, **more)
    assert done.code == 0, done.err
    return done.out.decode()


def test_a_compiled_program__runs_on_another_device(folder):
    plugin = cli_env.plugin()
    said = run(folder, "compile", "add.mlir", "-o", "add.exe", "-p", plugin)
    assert said.startswith("add.mlir -> add.exe, ")
    run(folder, "run", "add.exe", "-p", f"{plugin}#1", "a.npy", "a.npy", "-o",
        "c.npy")
    assert (np.load(folder / "c.npy") == 2 * np.load(folder / "a.npy")).all()


def test_a_compiled_program__is_refused_by_another_plugin(folder):
    run(folder, "compile", "add.mlir", "-o", "add.exe", "-p", cli_env.plugin())
    done = cli_env.run(folder, "run", "add.exe", "-p", cli_env.plugin("P2"),
                       "a.npy", "a.npy", "-o", "c.npy")
    assert done.code == 1
    assert b"[IST_ERR_PROGRAM_VERSION 322]" in done.err
    assert not (folder / "c.npy").exists()


def test_a_compiled_program_cut_short__is_refused(folder):
    plugin = cli_env.plugin()
    run(folder, "compile", "add.mlir", "-o", "add.exe", "-p", plugin)
    whole = (folder / "add.exe").read_bytes()
    (folder / "add.exe").write_bytes(whole[:-1])
    done = cli_env.run(folder, "run", "add.exe", "-p", plugin, "a.npy", "a.npy")
    assert done.code == 1 and b"it is cut short" in done.err


def test_run__keeps_programs_unless_told_not_to(folder):
    words = "run", "add.mlir", "-p", cli_env.plugin(), "a.npy", "a.npy"
    cache = folder / "cache"
    on = {"ISTHMUS_CACHE": "on", "ISTHMUS_CACHE_DIR": str(cache)}
    run(folder, *words, "--no-cache", env=on)
    assert not cache.exists()
    for _ in range(2):
        run(folder, *words, env=on)
    assert len(list(cache.glob("*.exe.isthmus-cache"))) == 1
    assert cache.stat().st_mode & 0o777 == 0o700
    assert f"compiled programs in {cache}: 1 of " in run(folder, "doctor",
                                                         env=on)


def test_a_plugin_that_dies_loading_a_program__does_so_once(folder):
    (folder / "add.mlir").write_text("lying.add_one_f32 11 2 3")
    env = {"ISTHMUS_CACHE": "on", "ISTHMUS_CACHE_DIR": str(folder / "cache"),
           "LYING_PJRT_RULES": "addressable=1 "
                               "die=Executable_DeserializeAndLoad"}
    words = ("run", "add.mlir", "-p", cli_env.lying(), "a.npy", "-o", "c.npy")
    run(folder, *words, env=env)
    assert cli_env.run(folder, *words, env=env).code < 0
    for _ in range(3):
        run(folder, *words, env=env)
    assert (np.load(folder / "c.npy") == np.load(folder / "a.npy") + 1).all()


NAN = """module { func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %o = stablehlo.constant dense<1.0> : tensor<4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %c = stablehlo.compare NE, %a, %a
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %s = stablehlo.select %c, %o, %z : tensor<4xi1>, tensor<4xf32>
  return %s : tensor<4xf32> } }
"""
FAST = ("--xla_cpu_enable_fast_math=true "
        "--xla_cpu_fast_math_honor_nans=false")


@pytest.mark.parametrize("key", ["P1", "P2", "P3"])
def test_run__keeps_programs_apart_by_flags(folder, key):
    (folder / "nan.mlir").write_text(NAN)
    values = np.array([1, np.nan, 2, np.nan], dtype="f4")
    np.save(folder / "n.npy", values)
    words = "run", "nan.mlir", "-p", cli_env.plugin(key), "n.npy", "-o", "o.npy"
    cache = folder / "cache"
    on = {"ISTHMUS_CACHE": "on", "ISTHMUS_CACHE_DIR": str(cache)}
    run(folder, *words, env={**on, "XLA_FLAGS": FAST})
    run(folder, *words, env=on)
    assert (np.load(folder / "o.npy") == np.isnan(values)).all()
    assert len(list(cache.glob("*.exe.isthmus-cache"))) == 2


def test_run__keeps_programs_apart_by_client_options(folder):
    words = "run", "add.mlir", "-p", cli_env.plugin("P2"), "a.npy", "a.npy"
    cache = folder / "cache"
    on = {"ISTHMUS_CACHE": "on", "ISTHMUS_CACHE_DIR": str(cache)}
    for more in (), ("-O", "cpu_device_count=2"), ():
        run(folder, *words, *more, env=on)
    assert len(list(cache.glob("*.exe.isthmus-cache"))) == 2
