# SPDX-License-Identifier: Apache-2.0
"""The table of the copy bench: speeds as multiples of memcpy, least of the
rounds and median; of small copies what they cost above memcpy."""

WIDTH = 43
SIDES = ("ours", "ours_2_threads", "numpy", "torch")
HEADS = ("ours", "2 threads~", "NumPy", "torch")
SMALL_SIDES = ("ours", "engine", "numpy", "torch")


def figures_of(case, side):
    return case["ours"] if side == "ours" else case["others"].get(side)


def speed_cell(case, side):
    figures = figures_of(case, side)
    if figures is None:
        return f"{'-':>13}"
    least, median = (case["peer"][figure] / figures[figure]
                     for figure in ("min_ns", "median_ns"))
    return f"{least:6.3f} {median:6.3f}"


def overhead_cell(case, side):
    figures = figures_of(case, side)
    if figures is None:
        return f"{'-':>13}"
    least, median = (figures[figure] - case["peer"][figure]
                     for figure in ("min_ns", "median_ns"))
    return f"{least:6.0f} {median:6.0f}"


def goal_cell(case):
    """Goal by goal, by what it is measured: "met" or what is missed."""
    said = []
    for goal in case["goals"]:
        if goal["met"]:
            said.append(f"met ({goal['against']})")
        elif goal["goal"].startswith("at most"):
            said.append(f"over by {goal['reached_min'] - goal['needs']:.0f} ns")
        else:
            said.append(f"{goal['reached_min']:.2f} of {goal['needs']:g} "
                        f"x {goal['against']}")
    return ", ".join(said)


def row_of(case):
    if case["group"] == "small":
        cells = [overhead_cell(case, side) for side in SMALL_SIDES]
    else:
        cells = [speed_cell(case, side) for side in SIDES]
        if not case["door"]:
            cells[0] += "*"
        cells.append(f"{case['traffic']:7.2f}")
    return f"{case['name']:{WIDTH}} " + "  ".join(cells) + \
        f"  {goal_cell(case)}".rstrip()


def head_of(case):
    """What stands above the first large and the first small case."""
    small = case["group"] == "small"
    heads = ("ours", "engine", "NumPy+", "torch+") if small else HEADS
    what = "ns above memcpy" if small else "times memcpy's speed"
    return (f"{what + ' (least, median)':{WIDTH}} "
            + "  ".join(f"{head:>13}" for head in heads)
            + ("" if small else "  traffic") + "  goals")


NOTES = ("traffic: bytes read and written, as a multiple of memcpy's",
         "~ by the wall's clock, which another program on the machine's cores "
         "disturbs;", "  the others by the thread's own",
         "* the engine, without the public door's checks",
         "+ timed in Python: the call is counted too")


class Table:
    """Prints the rows as they come."""

    def __init__(self):
        self.kind = None
        self.goals = []

    def show(self, case):
        kind = case["group"] == "small"
        if kind != self.kind:
            print(("" if self.kind is None else "\n") + head_of(case))
            self.kind = kind
        print(row_of(case), flush=True)
        self.goals += [goal["met"] for goal in case["goals"]]

    def close(self):
        print("\n".join(NOTES))
        print(f"goals: {sum(self.goals)} of {len(self.goals)} met")
