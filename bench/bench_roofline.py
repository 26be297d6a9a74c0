# SPDX-License-Identifier: Apache-2.0
"""What memory itself allows: reading, writing and copying one block by the
simplest loops, with huge and small pages, warm and fresh, beside memcpy of it.
The results of the copy bench are read by these."""

import ctypes
import mmap

import numpy as np
from bench_native import compile_bench
from copy_memory import huge_pages, make_block
from copy_rounds import time_sides

MIB = 1 << 20
SIZES = (MIB // 4, 8 * MIB, 64 * MIB, 256 * MIB)
BUDGET_NS = 1_000_000_000


def load_probes():
    """{name: function of target, source, times} of bench_roofline.c."""
    library = ctypes.CDLL(str(compile_bench("roofline", shared=True)))
    name, run = library.bench_probe_name, library.bench_probe_run
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.c_size_t]
    run.restype = ctypes.c_double
    run.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p,
                    ctypes.c_size_t, ctypes.c_size_t]
    probes, index = {}, 0
    while name(index):
        probes[name(index).decode()] = (
            lambda to, from_, times, index=index:
            run(index, to.ctypes.data, from_.ctypes.data, to.nbytes, times))
        index += 1
    return probes


def fresh_side(memcpy, source, huge):
    """memcpy to memory whose pages were given back before each copy."""
    target = make_block(source.nbytes, huge)
    base = target
    while isinstance(base, np.ndarray):
        base = base.base
    pages = base.obj if isinstance(base, memoryview) else base

    def timed(times):
        spent = 0.0
        for _ in range(times):
            pages.madvise(mmap.MADV_DONTNEED)
            spent += memcpy(target, source, 1)
        return spent / times
    return timed


def sides_of(probes, size):
    """{name: side}, "memcpy" among them: huge pages, warm."""
    to, from_ = make_block(size), make_block(size)
    small = make_block(size, huge=False), make_block(size, huge=False)
    sides = {name: lambda times, run=run: run(to, from_, times)
             for name, run in probes.items()}
    memcpy = probes["memcpy"]
    sides["memcpy, small pages"] = lambda times: memcpy(*small, times)
    if hasattr(mmap, "MADV_DONTNEED"):
        sides["memcpy, fresh huge pages"] = fresh_side(memcpy, from_, True)
        sides["memcpy, fresh small pages"] = fresh_side(memcpy, small[1],
                                                        False)
    return sides


def size_text(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size >> 10} KiB"


def run_roofline(rounds, iterations, quick):
    """{case: record}: "ours" is the probe, "peer" memcpy of the same size."""
    probes, cases = load_probes(), []
    for size in (SIZES[:1] if quick else SIZES):
        times = time_sides(sides_of(probes, size), rounds, iterations,
                           BUDGET_NS, 2 * size)
        peer = times.pop("memcpy")
        cases += [{"name": f"{size_text(size)} {name}", "ours": found,
                   "peer": peer, "bytes": size,
                   "ratio_min": found["min_ns"] / peer["min_ns"],
                   "ratio_median": found["median_ns"] / peer["median_ns"],
                   "difference_min_ns": found["min_ns"] - peer["min_ns"]}
                  for name, found in times.items()]
    return cases, {"huge pages": huge_pages()}
