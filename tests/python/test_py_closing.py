# SPDX-License-Identifier: Apache-2.0
"""A backend, its memory, tensors, capsules, a program and its output, closed
and dropped in every order (of any three of the eight), by the collector too:
nothing crashes, the memory is let go, no thread or descriptor is left."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numpy")

PLUGINS = ("ISTHMUS_LYING_PJRT", "ISTHMUS_P1", "ISTHMUS_P2", "ISTHMUS_P3")

CLOSING = r'''
import gc, itertools, os, random, sys, time, weakref
import numpy as np
import isthmus

path, text, cycles = sys.argv[1], sys.argv[2], sys.argv[3] == "cycles"
NAMES = ("backend", "memory", "tensor", "capsule", "view", "program",
         "output", "array")

def floats():
    raw = np.zeros(128, "uint8")
    start = -raw.ctypes.data % 64
    memory = raw[start:start + 24].view("float32")
    memory[:] = range(6)
    return memory

def make():
    backend = isthmus.open("pjrt:" + path)
    memory = floats()
    tensor = isthmus.from_dlpack(memory, device=backend, copy=False)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    view = isthmus.from_dlpack(tensor.__dlpack__(max_version=(1, 0)))
    program = backend.compile(text)
    output, = program(tensor)
    array = isthmus.to(output, "numpy")
    return dict(zip(NAMES, (backend, memory, tensor, capsule, view, program,
                            output, array)))

def drop(things, name):
    thing = things.pop(name)
    if cycles:
        cell = [thing]
        cell.append(cell)
        del cell, thing
        gc.collect()
    elif name == "backend":
        thing.close()

def held():
    return (len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))

def close_in(order):
    things = make()
    gone = weakref.ref(things["memory"])
    wanted = things["array"].tolist()
    for name in order:
        drop(things, name)
        if "array" in things:
            assert things["array"].tolist() == wanted, order
        if "view" in things:
            assert memoryview(things["view"]).tolist() == [0, 1, 2, 3, 4, 5]
            assert gone() is not None, order
    for turn in range(20000):       # a plugin's threads may be late
        if gone() is None:
            break
        time.sleep(0.001)
    assert gone() is None, order

def settle(before):
    for turn in range(20000):
        if all(now <= then for now, then in zip(held(), before)):
            break
        time.sleep(0.001)
    assert all(now <= then for now, then in zip(held(), before)), (held(), before)

def orders():
    """Permutations until any three things were closed in each order."""
    left = set(itertools.permutations(range(len(NAMES)), 3))
    draw = random.Random(20)
    while left:
        tries = [draw.sample(range(len(NAMES)), len(NAMES)) for _ in range(60)]
        best = max(tries, key=lambda o: len(left.intersection(
            itertools.combinations(o, 3))))
        left.difference_update(itertools.combinations(best, 3))
        yield [NAMES[i] for i in best]

close_in(NAMES)
close_in(NAMES[::-1])
before = held()
for order in orders():
    close_in(order)
settle(before)
print("fine")
'''

ADD = ("func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {\n"
       "  %0 = stablehlo.add %x, %x : tensor<6xf32>\n"
       "  return %0 : tensor<6xf32>\n}\n")


@pytest.mark.parametrize("how", ["close", "cycles"])
@pytest.mark.parametrize("plugin", PLUGINS)
def test_closing__in_every_order_lets_everything_go(plugin, how):
    if plugin not in os.environ:
        pytest.skip(f"{plugin} names no plugin")
    lies = plugin == "ISTHMUS_LYING_PJRT"
    text = "lying.identity 11 6" if lies else ADD
    env = dict(os.environ, LYING_PJRT_RULES="addressable=1")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", CLOSING, os.environ[plugin], text,
         how], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("fine\n"), done.stderr
