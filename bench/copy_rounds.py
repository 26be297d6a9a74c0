# SPDX-License-Identifier: Apache-2.0
"""Times the sides of a copy in turn: short rounds, many of them, in an order
drawn anew for each, so that whatever disturbs the machine disturbs all."""

import math
import random
import statistics
import time

from bench_record import SEED

SPAN_NS = 400_000  # what one timing should last at least, by repeating
CACHED = 64 << 20  # working sets below this may be in the caches
LEAST_RUNS = 5


def python_side(function):
    """A side that is timed in Python: its call is counted too. What others
    take of the processor meanwhile is not, here as in C."""
    def timed(times):
        start = time.thread_time_ns()
        for _ in range(times):
            function()
        return (time.thread_time_ns() - start) / times
    return timed


def plan_side(cost_ns, rounds, iterations, budget_ns):
    """(times per timing, rounds between timings) of one side. A slow side is
    timed in fewer rounds, spread over all of them."""
    times = max(1, min(iterations, math.ceil(SPAN_NS / cost_ns)))
    step = max(1, math.ceil(cost_ns * times * rounds / budget_ns))
    return times, min(step, max(1, rounds // LEAST_RUNS))


def time_sides(sides, rounds, iterations, budget_ns, working_set):
    """{side: {"min_ns", "median_ns", "runs"}} of each of sides, functions of
    a number of times that return the nanoseconds of one. Before each timing
    the side runs once uncounted where the caches can hold the working set:
    each side then finds what it left there itself."""
    order = list(sides)
    plans, times = {}, {name: [] for name in order}
    for name in order:
        sides[name](1)
        plans[name] = plan_side(max(sides[name](1), 1.0), rounds, iterations,
                                budget_ns)
    shuffle = random.Random(SEED).shuffle
    for number in range(rounds):
        shuffle(order)
        for name in order:
            repeat, step = plans[name]
            if number % step:
                continue
            if working_set <= CACHED:
                sides[name](1)
            times[name].append(sides[name](repeat))
    return {name: {"min_ns": min(seen), "median_ns": statistics.median(seen),
                   "runs": len(seen)} for name, seen in times.items()}
