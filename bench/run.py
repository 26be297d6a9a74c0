# SPDX-License-Identifier: Apache-2.0
"""Runs the benches: isthmus beside what one would use without it, as ratios.

    python bench/run.py [NAME ...] [--rounds N] [--iterations N] [--quick]
                        [--cases WORD] [--out DIR]
    python bench/run.py --list
    python bench/run.py --compare A.json B.json

`./dev bench` calls it. Every case times both sides alternately in one process
and reports the least and the median of the rounds. Numbers are recorded here,
never asserted in a test.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from bench_native import run_native
from bench_record import describe_run, find_plugins, reduce_rounds

HERE = Path(__file__).resolve().parent

# name: (what it is, rounds, iterations, how it runs). Rounds are many and
# short, so that on a busy machine some of them are not disturbed.
BENCHES = {
    "host": ("import and export on the host, C; peer: malloc + free",
             1001, 500, "native"),
    "view": ("import a view into a plugin, C; peer: its bare CreateView",
             501, 100, "plugin"),
    "export": ("export a plugin's output, C; peer: the bare calls",
               1001, 500, "plugin"),
    "exchange": ("Python exchanges; peer: the consumer's own from_dlpack",
                 201, 50, "python"),
    "copy": ("copies between layouts; peer: memcpy; also NumPy and torch",
             201, 1000, "copy"),
    "pjrt": ("plugins: views, exports, runs, copies, Python; peers: the bare "
             "calls, pypjrt, jax", 301, 100, "pjrt"),
    "roofline": ("reads, writes and copies by plain loops; peer: memcpy",
                 201, 100, "roofline"),
}


def run_copies(rounds, iterations, chosen):
    from bench_copy import run_copy
    from copy_table import Table
    table = Table()
    made = run_copy(rounds, iterations, chosen.quick, chosen.cases or "",
                    table.show)
    table.close()
    return made


def run_plugins(rounds, iterations, chosen):
    from bench_pjrt import Table, run_pjrt
    table = Table()
    made = run_pjrt(rounds, iterations, chosen.quick, table.show)
    table.close()
    return made


def run_bench(name, rounds, iterations, chosen):
    """The cases of one bench, and the versions of what it met."""
    kind = BENCHES[name][3]
    if kind == "copy":
        return run_copies(rounds, iterations, chosen)
    if kind == "pjrt":
        return run_plugins(rounds, iterations, chosen)
    if kind == "roofline":
        from bench_roofline import run_roofline
        return run_roofline(rounds, iterations, chosen.quick)
    if kind == "python":
        from bench_exchange import run_exchange
        rows, versions = run_exchange(rounds, iterations)
    elif kind == "plugin":
        rows, versions = {}, {}
        plugins = find_plugins()
        if not plugins:
            raise SystemExit(f"bench: {name}: no plugin found: needs one of "
                             "the wheels in requirements-plugins.txt")
        for wheel, version, path in plugins:
            versions[wheel] = version
            for case, row in run_native(name, rounds, iterations,
                                        path).items():
                rows[f"{case}, {wheel}"] = row
    else:
        rows, versions = run_native(name, rounds, iterations), {}
    return [reduce_rounds(case, row) for case, row in rows.items()], versions


def show(result):
    width = max(len(case["name"]) for case in result["cases"])
    print(f"  {'':{width}}  {'ours ns':>9} {'median':>9}  {'peer ns':>9} "
          f"{'median':>9}  {'ratio':>6} {'median':>6}")
    for case in result["cases"]:
        ours, peer = case["ours"], case["peer"]
        print(f"  {case['name']:{width}}  {ours['min_ns']:9.1f} "
              f"{ours['median_ns']:9.1f}  {peer['min_ns']:9.1f} "
              f"{peer['median_ns']:9.1f}  {case['ratio_min']:6.2f} "
              f"{case['ratio_median']:6.2f}")


def compare(first, second):
    """Cases of two results side by side: how the ratios changed."""
    results = []
    for path in (first, second):
        try:
            results.append(json.loads(Path(path).read_text()))
        except (OSError, ValueError) as error:
            raise SystemExit(f"bench: {path}: cannot be read: {error}")
    before = {case["name"]: case for case in results[0]["cases"]}
    print(f"{results[0]['commit'][:12]} -> {results[1]['commit'][:12]}, "
          "ratio of ours to peer (least of the rounds)")
    for case in results[1]["cases"]:
        old = before.get(case["name"])
        if old:
            print(f"  {case['name']}: {old['ratio_min']:.2f} -> "
                  f"{case['ratio_min']:.2f}")
        else:
            print(f"  {case['name']}: new, {case['ratio_min']:.2f}")


def arguments():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__,
                                     formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rounds", type=int, help="how often the sides take "
                        "turns; each bench has its own number")
    parser.add_argument("--iterations", type=int, help="calls of a short "
                        "piece of work in one round")
    parser.add_argument("--quick", action="store_true",
                        help="small sizes, for tests of the bench itself")
    parser.add_argument("--cases", metavar="WORD", help="of copy: only cases "
                        "whose names hold WORD; shown, not recorded")
    parser.add_argument("--out", type=Path, default=HERE / "results",
                        help="folder of the results, which are replaced; "
                        "bench/results unless told")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"))
    chosen = parser.parse_args()
    for name in chosen.names:
        if name not in BENCHES:
            parser.error(f"{name}: no such bench; there are "
                         + ", ".join(BENCHES))
    for number in (chosen.rounds, chosen.iterations):
        if number is not None and number < 1:
            parser.error(f"{number}: needs a number from 1")
    return chosen


def record_bench(name, chosen):
    """Runs one bench, shows it and writes its result, whole or not at all."""
    what, rounds, iterations, kind = BENCHES[name]
    rounds = chosen.rounds or rounds
    iterations = chosen.iterations or iterations
    print(f"{name}: {what}", flush=True)
    cases, versions = run_bench(name, rounds, iterations, chosen)
    result = {"name": name, "what": what,
              **describe_run(rounds, iterations, versions), "cases": cases}
    if kind not in ("copy", "pjrt"):
        show(result)
    elif chosen.cases:
        return
    path = chosen.out / f"{name}.json"
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(result, indent=1) + "\n")
    beside.replace(path)
    if kind == "copy":
        from copy_chart import draw_result
        draw_result(path)
    print(f"recorded in {path}", flush=True)


def main():
    chosen = arguments()
    if chosen.list:
        for name, (what, *_) in BENCHES.items():
            print(f"{name:10} {what}")
        return
    if chosen.compare:
        compare(*chosen.compare)
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or BENCHES:
        record_bench(name, chosen)


if __name__ == "__main__":
    main()
