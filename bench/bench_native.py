# SPDX-License-Identifier: Apache-2.0
"""Builds the C benches against the library in build/ and runs them."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def build_folder():
    return Path(os.environ.get("ISTHMUS_BUILD", ROOT / "build"))


def compile_bench(name, shared=False):
    """The executable of bench_NAME.c, or the shared library, made anew when
    something is newer."""
    library = build_folder() / "libisthmus.a"
    if not library.is_file():
        raise SystemExit(f"bench: {library}: not there; run ./dev build first")
    sources = [HERE / f"bench_{name}.c", HERE / "bench_clock.c",
               HERE / "bare_pjrt.c"]
    target = build_folder() / "bench" / (f"bench_{name}"
                                         + (".so" if shared else ""))
    needs = [library, *sources, *HERE.glob("*.h")]
    if target.is_file() and all(
            need.stat().st_mtime < target.stat().st_mtime for need in needs):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{name}.{os.getpid()}")
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-DNDEBUG",
               *(["-shared", "-fPIC"] if shared else []),
               "-DISTHMUS_STATIC", f"-I{HERE}", f"-I{ROOT / 'include'}",
               f"-I{ROOT / 'src'}", *map(str, sources), str(library),
               "-ldl", "-pthread", "-o", str(beside)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise SystemExit(f"bench: {name}: does not compile:\n{made.stderr}")
    beside.replace(target)
    return target


def run_native(name, rounds, iterations, plugin=None):
    """{case: [(ours, peer) ns of each round]} of one C bench."""
    command = [str(compile_bench(name)), str(rounds), str(iterations)]
    run = subprocess.run(command + ([plugin] if plugin else []),
                         capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"bench: {name}: failed ({run.returncode}):\n"
                         f"{run.stderr}")
    rows = {}
    for line in run.stdout.splitlines():
        case, ours, peer = line.split("\t")
        rows.setdefault(case, []).append((float(ours), float(peer)))
    return rows
