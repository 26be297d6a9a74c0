# SPDX-License-Identifier: Apache-2.0
"""What a copy between two layouts costs: isthmus, memcpy, NumPy and torch (one
thread) into the same warm memory, in the same rounds."""

import gc
import os
from importlib import metadata

import numpy as np
from copy_cases import large_cases, small_cases, torch
from copy_goals import judge
from copy_memory import huge_pages, make_block, poison
from copy_native import NativeCopy, load_library, memcpy_side
from copy_rounds import python_side, time_sides

BUDGET_NS = 1_500_000_000  # of one side in one case
QUICK_BUDGET_NS = 2_000_000
SMALL_ROUNDS = 5  # times as many: a small copy takes no time


def check_values(name, work, sides):
    """Every side writes what NumPy writes, and not a byte beside it."""
    memory = work.target.memory
    poison(memory)
    work.numpy()
    right = memory.copy()
    for side, run in sides.items():
        if side == "memcpy":
            continue
        poison(memory)
        run(1)
        if not np.array_equal(memory, right):
            at = int(np.flatnonzero(memory != right)[0])
            raise SystemExit(f"bench: copy: {name}: {side} wrote a wrong byte "
                             f"at {at} of {memory.nbytes}")


def roofline(library, work):
    """The memcpy that a case is measured by, and what it is in words."""
    size = work.target.nbytes
    target = work.target.view.reshape(-1).view(np.uint8)
    source = work.source.memory
    words = "from the case's own source"
    if source.nbytes < size:
        source, words = make_block(size), "from other memory"
    elif work.source.view.flags["C_CONTIGUOUS"]:
        source = work.source.view.reshape(-1).view(np.uint8)
    unit, name = (1 << 20, "MiB") if size >= 1 << 20 else (1, "bytes")
    return (memcpy_side(library, target, source),
            f"memcpy of {size / unit:.4g} {name} {words} to the same target")


def find_sides(library, work, group):
    """{name: side} of everything that is timed, and the C copies to close."""
    native = NativeCopy(library, work.source, work.target)
    opened = [native]
    memcpy, words = roofline(library, work)
    sides = {"ours": native.best, "memcpy": memcpy,
             "numpy": python_side(work.numpy)}
    if work.torch:
        sides["torch"] = python_side(work.torch)
    if group == "small":
        sides["engine"] = native.engine
    else:
        opened.append(NativeCopy(library, work.source, work.target, 2))
        sides["ours_2_threads"] = opened[-1].best
    return sides, opened, {"roofline": words, "door": native.has_door}


def reduce_case(name, group, work, times, words):
    """The record of one case: as of every bench, and what is said of copies."""
    ours, peer = times["ours"], times["memcpy"]
    return {
        "name": name, "group": group, "ours": ours, "peer": peer,
        "ratio_min": ours["min_ns"] / peer["min_ns"],
        "ratio_median": ours["median_ns"] / peer["median_ns"],
        "difference_min_ns": ours["min_ns"] - peer["min_ns"],
        "others": {side: figures for side, figures in times.items()
                   if side not in ("ours", "memcpy")},
        "target_bytes": work.target.nbytes,
        "source_bytes": work.source.memory.nbytes,
        # Bytes read and written, as a multiple of memcpy's.
        "traffic": (work.source.memory.nbytes + work.target.nbytes)
        / (2 * work.target.nbytes),
        **words, "goals": judge(group, times),
    }


def run_case(library, case, rounds, iterations, budget_ns):
    name, group, make = case
    work = make()
    sides, opened, words = find_sides(library, work, group)
    check_values(name, work, sides)
    if group == "small":
        rounds *= SMALL_ROUNDS
    working_set = work.target.nbytes + work.source.memory.nbytes
    times = time_sides(sides, rounds, iterations, budget_ns, working_set)
    for native in opened:
        native.close()
    return reduce_case(name, group, work, times, words)


def versions_met():
    versions = {"huge pages": huge_pages(), "load average":
                " ".join(f"{load:.2f}" for load in os.getloadavg())}
    for name in ("numpy", "ml_dtypes", "torch"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def run_copy(rounds, iterations, quick=False, word="", each=print):
    """The records of all cases whose names hold word, and the versions; each
    is shown a record as soon as it is there."""
    if torch:
        torch.set_num_threads(1)
    library, versions, records = load_library(), versions_met(), []
    budget_ns = QUICK_BUDGET_NS if quick else BUDGET_NS
    cases = [case for case in large_cases(quick) + small_cases()
             if word in case[0]]
    if not cases:
        raise SystemExit(f"bench: copy: {word}: in the name of no case")
    gc.disable()
    try:
        for case in cases:
            records.append(run_case(library, case, rounds, iterations,
                                    budget_ns))
            each(records[-1])
            gc.collect()
    finally:
        gc.enable()
    return records, versions
