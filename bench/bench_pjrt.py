# SPDX-License-Identifier: Apache-2.0
"""Everything that PJRT plugins are used for, beside the bare calls, pypjrt and
jax, with the goals: one run, one result."""

import gc
import os
import time
from contextlib import contextmanager
from importlib import metadata

from bench_exchange import aligned_array
from bench_native import run_native
from bench_record import find_plugins, reduce_rounds
from copy_rounds import time_sides

BUDGET_NS = 1_000_000_000  # of one side in one case
MIB = 256  # of the copying import
DLPACK = (1, 3)

# The first words of a case: (what is looked at, at most, in words).
GOALS = {
    "import a view": ("difference_min_ns", 100,
                      "at most 100 ns above the plugin's CreateView"),
    "export an output": ("ours", 300, "at most 300 ns"),
    "run a tiny program": ("difference_min_ns", 500,
                           "at most 500 ns above the bare call"),
    "copying import / memcpy": ("ratio_min", 1.2,
                                "at most 1.2 times memcpy to warm memory"),
    "Python import": ("ours", 1500, "at most 1500 ns"),
    "Python export": ("ours", 800, "at most 800 ns"),
    "hand-over": ("bytes_moved", 0, "no byte moved"),
}


def judge(case):
    """The goals of a case and how it stands to them; the least of the rounds
    decides."""
    judged = []
    for words, (figure, needs, text) in GOALS.items():
        if case["name"].startswith(words):
            reached = (case["ours"]["min_ns"] if figure == "ours"
                       else case[figure])
            judged.append({"goal": text, "needs": needs,
                           "reached_min": reached, "met": reached <= needs})
    return judged


def native_cases(rounds, iterations, quick):
    """The C sides of each plugin, against its bare calls."""
    if quick:
        os.environ["BENCH_MIB"] = "4"
    for wheel, _, path in find_plugins():
        for bench in ("view", "export", "pjrt"):
            rows = run_native(bench, rounds, iterations, path)
            for name, row in rows.items():
                yield reduce_rounds(f"{name}, {wheel}", row)


def timed(function):
    def run(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            function()
        return (time.perf_counter_ns() - start) / times
    return run


def reduce_sides(name, sides, rounds, iterations, **more):
    """A case of functions; the first of the others is the peer."""
    times = time_sides({side: timed(run) for side, run in sides.items()},
                       rounds, iterations, BUDGET_NS, 0)
    ours, peer, *rest = times
    ours, peer_times = times[ours], times[peer]
    return {"name": name, "ours": ours, "peer": peer_times,
            "peer_name": peer,
            "ratio_min": ours["min_ns"] / peer_times["min_ns"],
            "ratio_median": ours["median_ns"] / peer_times["median_ns"],
            "difference_min_ns": ours["min_ns"] - peer_times["min_ns"],
            "others": {side: times[side] for side in rest}, **more}


@contextmanager
def pypjrt_client(path):
    """A client of the peer pypjrt, or None where it is not installed. It is
    never closed: closing it with exports alive ends the process."""
    try:
        import pypjrt
    except ModuleNotFoundError:
        yield None
        return
    yield pypjrt.Client.create(pypjrt.Plugin(path))


def jax_sides(array):
    """jax on its own CPU client: what one has without isthmus."""
    try:
        import jax
    except ModuleNotFoundError:
        return {}, {}
    held = jax.device_put(array, jax.devices("cpu")[0])
    return ({"jax": lambda: jax.numpy.from_dlpack(array)},
            {"jax": lambda: held.__dlpack__(max_version=DLPACK)})


def python_cases(rounds, iterations, kept):
    import isthmus
    array = aligned_array()
    jax_in, jax_out = jax_sides(array)
    for wheel, _, path in find_plugins():
        device = isthmus.open("pjrt", path=path).devices[0]
        there = isthmus.from_dlpack(array, device=device)
        into = {"isthmus": lambda d=device: isthmus.from_dlpack(array,
                                                                device=d)}
        out = {"isthmus": lambda t=there: t.__dlpack__(max_version=DLPACK)}
        with pypjrt_client(path) as client:
            if client:
                held = client.from_dlpack(array)
                kept += [client, held]
                into["pypjrt"] = lambda c=client: c.from_dlpack(array)
                out["pypjrt"] = lambda h=held: h.__dlpack__()
        for name, sides, more in (("Python import", into, jax_in),
                                  ("Python export", out, jax_out)):
            sides.update(more)
            if len(sides) > 1:
                yield reduce_sides(f"{name}, {wheel}", sides, rounds,
                                   iterations)


def handover_case(rounds, iterations):
    """One tensor through every plugin, and the bytes that its receipts say
    were moved; the peer is one copy by NumPy of the same elements."""
    import isthmus
    import numpy as np
    devices = [isthmus.open("pjrt", path=path).devices[0]
               for *_, path in find_plugins()]
    array = isthmus.empty((1 << 20,), "float32", like="numpy")
    array[...] = 1
    target = np.empty_like(array)
    moved, at = 0, array
    for device in devices:
        at, receipt = isthmus.to(at, device, receipt=True)
        moved += receipt.bytes_moved
    back = np.from_dlpack(at)
    if back.ctypes.data != array.ctypes.data:
        moved += array.nbytes

    def hand_on():
        here = array
        for device in devices:
            here = isthmus.to(here, device)

    return reduce_sides(
        f"hand-over of 4 MiB through {len(devices)} plugins",
        {"isthmus": hand_on, "one numpy copy":
         lambda: np.copyto(target, array)},
        rounds, iterations, bytes_moved=moved)


def versions_met():
    versions = {"load average":
                " ".join(f"{load:.2f}" for load in os.getloadavg())}
    for name in ("numpy", "jax", "jaxlib", "pypjrt",
                 *(wheel for wheel, *_ in find_plugins())):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def run_pjrt(rounds, iterations, quick=False, each=print):
    """The records of all cases, each shown as soon as it is there."""
    if not find_plugins():
        raise SystemExit("bench: pjrt: no plugin found: needs one of the "
                         "wheels in requirements-plugins.txt")
    versions, records, kept = versions_met(), [], []

    def record(case):
        case["goals"] = judge(case)
        records.append(case)
        each(case)

    for case in native_cases(rounds, iterations, quick):
        record(case)
    gc.disable()
    try:
        for case in python_cases(rounds, iterations, kept):
            record(case)
        record(handover_case(rounds, iterations))
    finally:
        gc.enable()
    return records, versions


class Table:
    """Prints the cases as they come: ours, the peers, and the goal."""

    def __init__(self):
        self.goals = []
        print(f"  {'least of the rounds, ns':58} {'ours':>13} {'peer':>13} "
              f"{'ratio':>7} {'above':>9}  goal")

    def show(self, case):
        self.goals += [goal["met"] for goal in case["goals"]]
        said = "; ".join(("met: " if goal["met"] else "missed: ")
                         + goal["goal"] for goal in case["goals"])
        print(f"  {case['name']:58} {case['ours']['min_ns']:13.1f} "
              f"{case['peer']['min_ns']:13.1f} {case['ratio_min']:7.2f} "
              f"{case['difference_min_ns']:9.0f}  {said}".rstrip(),
              flush=True)
        for side, figures in case.get("others", {}).items():
            print(f"    {side:56} {'':13} {figures['min_ns']:13.1f}")

    def close(self):
        print(f"goals: {sum(self.goals)} of {len(self.goals)} met")
