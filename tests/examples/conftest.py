# SPDX-License-Identifier: Apache-2.0
"""What the tests of the examples and benches share: where the build is, and
each device plugin that is installed here."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# package, file below it; requirements-plugins.txt names the wheels.
PLUGINS = {
    "lammps_jax_pjrt_cpu": "pjrt_c_api_cpu_plugin.so",
    "xla_plugins": "xla_cpu_pjrt/xla_cpu_pjrt.so",
    "fastatomstruct_xla_cpu": "libpjrt_cpu.so",
}


@pytest.fixture(params=PLUGINS)
def plugin(request):
    """The path of one plugin; the test runs once for each."""
    spec = importlib.util.find_spec(request.param)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / PLUGINS[request.param]
        if path.is_file():
            return path
    pytest.skip(f"the plugin wheel of {request.param} is not installed")


@pytest.fixture(scope="session")
def build():
    """The folder with the built library and command."""
    folder = Path(os.environ.get("ISTHMUS_BUILD", ROOT / "build"))
    if not (folder / "libisthmus.a").is_file():
        pytest.fail(f"{folder}: no build there; run ./dev build first")
    return folder


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], text=True,
                          capture_output=True, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def tool(name):
    path = shutil.which(name)
    if not path:
        pytest.fail(f"{name}: not found; needed to build the example")
    return path


@pytest.fixture(scope="session")
def installed(build, tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "with a space"
    # By component, so that the build's one manifest, which uninstall reads, is
    # left to whoever installs for real.
    run(tool("cmake"), "--install", build, "--prefix", prefix,
        "--component", "Unspecified")
    return prefix
