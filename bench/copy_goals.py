# SPDX-License-Identifier: Apache-2.0
"""The goals of the host copy, in one place, and how a result stands to them.
They are recorded beside the numbers, never asserted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Goal:
    """At least `needs` times as fast as a side; or, where most is true, at
    most `needs` nanoseconds more than it."""

    against: str  # "memcpy", "torch", "the better of NumPy and torch"
    needs: float
    most: bool = False

    @property
    def text(self):
        if self.most:
            return f"at most {self.needs:g} ns above {self.against}"
        return f"at least {self.needs:g} x {self.against}"


BETTER = "the better of NumPy and torch"
GOALS = {
    "f32 transpose": (Goal("memcpy", 0.6), Goal("torch", 2.5)),
    "u8 transpose": (Goal("memcpy", 0.3), Goal("torch", 2.5)),
    "[::2]": (Goal("memcpy", 0.9),),
    "NCHW to NHWC": (Goal("memcpy", 0.5), Goal(BETTER, 1.5)),
    "contiguous": (Goal("memcpy", 0.95),),
    "conversion": (Goal("torch", 1.0),),
    "small": (Goal("memcpy", 60, most=True),),
}


def peer_time(goal, times, figure):
    """The time to compare with, or None where that side was not run."""
    if goal.against == BETTER:
        found = [times[side][figure] for side in ("numpy", "torch")
                 if side in times]
        return min(found) if found else None
    return times[goal.against][figure] if goal.against in times else None


def judge(group, times):
    """How a case stands to each goal of its group. times: {side: {"min_ns",
    "median_ns"}}; the least of the rounds decides whether it is met."""
    judged = []
    for goal in GOALS.get(group, ()):
        reached = {}
        for figure in ("min_ns", "median_ns"):
            peer = peer_time(goal, times, figure)
            if peer is None:
                break
            ours = times["ours"][figure]
            reached[figure] = ours - peer if goal.most else peer / ours
        if len(reached) < 2:
            continue
        least = reached["min_ns"]
        met = least <= goal.needs if goal.most else least >= goal.needs
        judged.append({"goal": goal.text, "against": goal.against,
                       "needs": goal.needs, "reached_min": least,
                       "reached_median": reached["median_ns"], "met": met})
    return judged
