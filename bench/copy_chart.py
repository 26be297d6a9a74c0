# SPDX-License-Identifier: Apache-2.0
"""Draws copy.json as copy.png beside it: speeds as multiples of memcpy, with
the goals, and what small copies cost above it.

    python bench/copy_chart.py bench/results/copy.json
"""

import json
import sys
from pathlib import Path

LARGE = (("ours", "isthmus", "#1b6ca8"),
         ("ours_2_threads", "isthmus, 2 threads (wall clock)", "#8fc1e3"),
         ("torch", "torch, 1 thread", "#e07b39"),
         ("numpy", "NumPy", "#7a7a7a"))
SMALL = (("ours", "isthmus, in C", "#1b6ca8"),
         ("engine", "isthmus, engine alone, in C", "#8fc1e3"),
         ("torch", "torch, from Python", "#e07b39"),
         ("numpy", "NumPy, from Python", "#7a7a7a"))
GOAL = "#b3123b"


def figure_of(case, side):
    figures = case["ours"] if side == "ours" else case["others"].get(side)
    return figures and figures["min_ns"]


def speed(case, side):
    time = figure_of(case, side)
    return time and case["peer"]["min_ns"] / time


def overhead(case, side):
    """A log axis has no zero: what is below 1 ns is drawn as 1 ns."""
    time = figure_of(case, side)
    return time and max(time - case["peer"]["min_ns"], 1.0)


def goal_at(case, goal):
    """Where a goal lies on the axis of its case."""
    if case["group"] == "small":
        return goal["needs"]
    if goal["against"] == "memcpy":
        return goal["needs"]
    # As a speed of ours: what is reached is ours against that peer.
    return speed(case, "ours") * goal["needs"] / goal["reached_min"]


def in_few_digits(number):
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def draw_side(axes, places, widths, height, label, colour):
    axes.barh(places, widths, height, label=label, color=colour)
    for place, width in zip(places, widths):
        axes.annotate(in_few_digits(width), (width, place), (4, 0),
                      textcoords="offset points", va="center", fontsize=6,
                      color="#333333", zorder=4,
                      bbox={"pad": 0.4, "color": "white", "alpha": 0.8})


def draw_goals(axes, cases, height):
    """Marks across the bar of isthmus, the first of its case: solid against
    memcpy, dotted against the peers."""
    labels = {"-": "goal, by memcpy", ":": "goal, by the peers"}
    for row, case in enumerate(cases):
        for goal in case["goals"]:
            line = "-" if goal["against"] == "memcpy" else ":"
            at = goal_at(case, goal)
            axes.plot([at, at], [row - 0.45, row - 0.35 + height], line,
                      color=GOAL, linewidth=2, label=labels.pop(line, None),
                      zorder=5)


def draw_bars(axes, cases, sides, value):
    """Horizontal bars, one group a case, the first case on top."""
    shown = [side for side in sides
             if any(value(case, side[0]) for case in cases)]
    height = 0.8 / len(shown)
    for number, (side, label, colour) in enumerate(shown):
        bars = [(row - 0.4 + height * (number + 0.5), value(case, side))
                for row, case in enumerate(cases) if value(case, side)]
        draw_side(axes, *zip(*bars), height, label, colour)
    draw_goals(axes, cases, height)
    axes.set_yticks(range(len(cases)), [case["name"] for case in cases],
                    fontsize=8)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.grid(axis="x", which="major", color="#dddddd")
    axes.set_axisbelow(True)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1.0),
                frameon=False)


def plain_ticks(axes, ticks):
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    axes.minorticks_off()


def draw(result, path):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    large = [case for case in result["cases"] if case["group"] != "small"]
    small = [case for case in result["cases"] if case["group"] == "small"]
    figure, (top, low) = pyplot.subplots(
        2, 1, figsize=(11, 0.47 * len(result["cases"]) + 2.2),
        height_ratios=(len(large), len(small)), layout="constrained")
    draw_bars(top, large, LARGE, speed)
    plain_ticks(top, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2))
    top.axvline(1, color="black", linewidth=1)
    top.set_xlabel("speed, memcpy of the same number of target bytes = 1; "
                   "log scale; longer is better", fontsize=8)
    top.set_title(f"Host copies into warm memory, least of the rounds; "
                  f"{result['cpu']}, commit {result['commit'][:12]}",
                  fontsize=10)
    draw_bars(low, small, SMALL, overhead)
    plain_ticks(low, (1, 10, 100, 1000, 10000))
    low.set_xlabel("small copies: nanoseconds above memcpy; log scale; "
                   "shorter is better", fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def draw_result(path):
    """Draws the chart of a result, or says why there is none."""
    try:
        draw(json.loads(path.read_text()), path.with_suffix(".png"))
    except ModuleNotFoundError as error:
        print(f"bench: no chart: {error.name} is not installed; needs "
              "requirements-bench.txt (./dev bench installs it)",
              file=sys.stderr)


if __name__ == "__main__":
    draw_result(Path(sys.argv[1]))
