# SPDX-License-Identifier: Apache-2.0
"""Random views: whatever the strides, values and receipts are right."""

import random

import pytest

np = pytest.importorskip("numpy")

import isthmus
from frameworks import address, aligned, values_of

SEEDS = range(40)
TARGETS = ("numpy", "torch", "jax")


def random_view(rng):
    """A view of an aligned array by a chain of random steps."""
    shape = [rng.randint(1, 5) for _ in range(rng.randint(0, 4))]
    count = int(np.prod(shape))
    dtype = rng.choice(["float32", "int16", "bool", "complex64", "uint8"])
    x = aligned((np.arange(count) % 7).reshape(shape), dtype)
    for _ in range(rng.randint(0, 4)):
        step = rng.choice(["slice", "flip", "permute", "new", "spread"])
        if step == "slice" and x.ndim:
            axis = rng.randrange(x.ndim)
            start = rng.randint(0, x.shape[axis])
            cut = slice(start, None, rng.choice([1, 2, 3]))
            x = x[(slice(None),) * axis + (cut,)]
        elif step == "flip" and x.ndim:
            x = np.flip(x, rng.randrange(x.ndim))
        elif step == "permute":
            x = x.transpose(rng.sample(range(x.ndim), x.ndim))
        elif step == "new":
            x = np.expand_dims(x, rng.randint(0, x.ndim))
        elif step == "spread":
            x = np.broadcast_to(x, (rng.randint(1, 3), *x.shape))
    return x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_views__keep_their_values_in_every_target(seed, target):
    pytest.importorskip(target)
    rng = random.Random(seed)
    for _ in range(10):
        x = random_view(rng)
        expected = x.copy()
        plan = isthmus.plan(x, target)
        result, receipt = isthmus.to(x, target, receipt=True)
        assert plan.json() == receipt.json()
        assert tuple(result.shape) == x.shape
        assert np.array_equal(values_of(result), expected)
        assert np.array_equal(x, expected)
        if x.size and receipt.route == "alias":
            assert address(result) == address(x)
        elif x.size:
            assert receipt.bytes_moved == expected.nbytes
            assert address(result) != address(x)
        refused = isthmus.plan(x, target, copy=False).route == "refuse"
        assert refused == (receipt.route == "copy")


@pytest.mark.parametrize("seed", SEEDS)
def test_views__fill_out_and_come_back_from_a_hidden_device(seed):
    rng = random.Random(seed)
    with isthmus.open("template", options={"addressable": False}) as device:
        for _ in range(10):
            x = random_view(rng)
            there = isthmus.to(x, device)
            assert np.array_equal(isthmus.to(there, "numpy"), x)
            out = np.empty(x.shape[::-1], x.dtype).T
            isthmus.to(there, "numpy", out=out)
            assert np.array_equal(out, x)
            isthmus.to(x, "numpy", out=out[...])
            assert np.array_equal(out, x)


@pytest.mark.parametrize("seed", SEEDS)
def test_views__of_torch_keep_their_values(seed):
    torch = pytest.importorskip("torch")
    rng = random.Random(seed)
    for _ in range(10):
        base = torch.arange(24).reshape(2, 3, 4).to(torch.int32)
        x = base.permute(rng.sample(range(3), 3))
        x = x[:, rng.randint(0, x.shape[1] - 1):, ::rng.choice([1, 2])]
        if rng.random() < 0.5:
            x = x.unsqueeze(rng.randint(0, 3)).expand(
                *([-1] * 4)).squeeze()
        for target in TARGETS:
            pytest.importorskip(target)
            assert np.array_equal(
                values_of(isthmus.to(x, target)), values_of(x))
