# SPDX-License-Identifier: Apache-2.0
"""What an exchange costs from Python: isthmus.to and isthmus.from_dlpack
beside the consumer's own from_dlpack on the same array."""

import gc
import time
from importlib import metadata

from bench_record import SEED, find_plugins

SHAPE = (32, 32)


def timed(function, iterations):
    start = time.perf_counter_ns()
    for _ in range(iterations):
        function()
    return (time.perf_counter_ns() - start) / iterations


def rounds_of(ours, peer, rounds, iterations):
    """(ours, peer) ns of each round; which goes first changes every round."""
    ours(), peer()
    timed(ours, iterations), timed(peer, iterations)  # not counted
    pairs = []
    for number in range(rounds):
        first, second = (peer, ours) if number % 2 else (ours, peer)
        times = timed(first, iterations), timed(second, iterations)
        pairs.append(times[::-1] if number % 2 else times)
    return pairs


def aligned_array():
    """A small array that every backend can view."""
    import isthmus
    import numpy as np

    array = isthmus.empty(SHAPE, "float32", like="numpy")
    array[...] = np.random.default_rng(SEED).random(SHAPE, np.float32)
    return array


def numpy_cases(array):
    import isthmus
    import numpy as np

    return {
        "numpy to isthmus / numpy.from_dlpack": (
            lambda: isthmus.from_dlpack(array),
            lambda: np.from_dlpack(array)),
        "numpy to numpy / numpy.from_dlpack": (
            lambda: isthmus.to(array, "numpy"),
            lambda: np.from_dlpack(array)),
    }


def torch_cases(array):
    import isthmus
    import numpy as np
    import torch

    tensor = torch.from_dlpack(array)
    return {
        "numpy to torch / torch.from_dlpack": (
            lambda: isthmus.to(array, "torch"),
            lambda: torch.from_dlpack(array)),
        "torch to numpy / numpy.from_dlpack": (
            lambda: isthmus.to(tensor, "numpy"),
            lambda: np.from_dlpack(tensor)),
        "torch to isthmus / torch.from_dlpack": (
            lambda: isthmus.from_dlpack(tensor),
            lambda: torch.from_dlpack(tensor)),
    }


def jax_cases(array):
    import isthmus
    import jax
    import numpy as np

    held = jax.device_put(array, jax.devices("cpu")[0])
    made = {
        "numpy to jax / jax.numpy.from_dlpack": (
            lambda: isthmus.to(array, "jax"),
            lambda: jax.numpy.from_dlpack(array)),
        "jax to numpy / numpy.from_dlpack": (
            lambda: isthmus.to(held, "numpy"),
            lambda: np.from_dlpack(held)),
    }
    for wheel, _, path in find_plugins():
        device = isthmus.open("pjrt", path=path).devices[0]
        there = isthmus.to(array, device)
        made[f"numpy to {wheel} / jax.numpy.from_dlpack"] = (
            lambda device=device: isthmus.to(array, device),
            lambda: jax.numpy.from_dlpack(array))
        made[f"{wheel} to numpy / numpy.from_dlpack of jax"] = (
            lambda there=there: isthmus.to(there, "numpy"),
            lambda: np.from_dlpack(held))
    return made


def all_cases():
    """{name: (ours, peer)}, each a function that makes one exchange. What is
    not installed is left out; the result's versions say so."""
    array = aligned_array()
    made = {}
    for cases in (numpy_cases, torch_cases, jax_cases):
        try:
            made.update(cases(array))
        except ModuleNotFoundError as error:
            if error.name not in ("torch", "jax"):
                raise
    return made


def run_exchange(rounds, iterations):
    """{case: rounds}, and the versions of the frameworks found."""
    versions = {}
    for name in ("numpy", "torch", "jax", "jaxlib",
                 *(wheel for wheel, *_ in find_plugins())):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    gc.disable()
    try:
        return {name: rounds_of(ours, peer, rounds, iterations)
                for name, (ours, peer) in all_cases().items()}, versions
    finally:
        gc.enable()
