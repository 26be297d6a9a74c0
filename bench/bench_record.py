# SPDX-License-Identifier: Apache-2.0
"""What a bench result holds beside its numbers: where, with what and how it
was made. Also finds the plugins and reduces rounds to figures."""

import importlib.util
import platform
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEED = 0  # of every random number in the benches

# wheel, package, file below it
PLUGINS = (
    ("lammps-jax-pjrt-cpu", "lammps_jax_pjrt_cpu",
     "pjrt_c_api_cpu_plugin.so"),
    ("xla-cpu-pjrt", "xla_plugins", "xla_cpu_pjrt/xla_cpu_pjrt.so"),
    ("fastatomstruct-xla-cpu", "fastatomstruct_xla_cpu", "libpjrt_cpu.so"),
)


def find_plugins():
    """(wheel, version, path of the plugin) of each that is installed."""
    found = []
    for wheel, package, file in PLUGINS:
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(folder) / file
            if path.is_file():
                found.append((wheel, metadata.version(wheel), str(path)))
    return found


def reduce_rounds(name, rounds):
    """Figures of one case from its rounds, pairs of (ours, peer) in ns."""
    sides = {}
    for side, times in zip(("ours", "peer"), zip(*rounds)):
        sides[side] = {"min_ns": min(times),
                       "median_ns": statistics.median(times)}
    ours, peer = sides["ours"], sides["peer"]
    return {"name": name, **sides,
            "ratio_min": ours["min_ns"] / peer["min_ns"],
            "ratio_median": ours["median_ns"] / peer["median_ns"],
            "difference_min_ns": ours["min_ns"] - peer["min_ns"]}


def said(*command):
    """First line of a command's output, or "unknown"."""
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return run.stdout.split("\n")[0] if run.returncode == 0 else "unknown"


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def version_of_isthmus():
    header = (ROOT / "include" / "isthmus" / "version.h").read_text()
    line = next(line for line in header.splitlines()
                if line.startswith("#define IST_VERSION_STRING"))
    return line.split('"')[1]


def describe_run(rounds, iterations, versions):
    """The fields that every result has."""
    commit = said("git", "rev-parse", "HEAD")
    changed = said("git", "status", "--porcelain", "--untracked-files=no")
    return {
        "commit": commit + ("+changes" if changed not in ("", "unknown")
                            else ""),
        "command": " ".join(["bench/run.py", *sys.argv[1:]]),
        "cpu": cpu_model(),
        "kernel": f"{platform.system()} {platform.release()}",
        "versions": {"isthmus": version_of_isthmus(),
                     "python": platform.python_version(),
                     "cc": said("cc", "--version"), **versions},
        "seed": SEED,
        "repetitions": {"rounds": rounds, "iterations": iterations},
    }
