# SPDX-License-Identifier: Apache-2.0
"""The cases of the copy bench: what is copied, how NumPy and torch do the same
work, and by which goals the result is read."""

from dataclasses import dataclass

import numpy as np
from bench_record import SEED
from copy_memory import make_block
from copy_native import End
from numpy.lib.stride_tricks import as_strided

try:
    import torch
except ModuleNotFoundError:  # a machine without a CPU build of it
    torch = None

MI = 1 << 20
SMALL = (8, 64, 512, 4096)  # elements


@dataclass
class Work:
    """A case, made: its memory and the peers. numpy and torch are functions
    that write the target once; None: there is no such call."""

    source: End
    target: End
    numpy: object
    torch: object = None


def by_torch(make, *arrays):
    """make(*tensors that view the arrays), or None where there is no torch."""
    return make(*map(torch.from_numpy, arrays)) if torch else None


def copy_work(source, target, torch_can=True):
    """A plain copy of one view to another of the same dtype and shape."""
    work = Work(source, target, lambda: np.copyto(target.view, source.view))
    if torch_can:
        work.torch = by_torch(lambda to, from_: lambda: to.copy_(from_),
                              target.view, source.view)
    return work


def random_block(nbytes):
    """Bytes that are finite numbers in every dtype of the bench."""
    block = make_block(nbytes)
    random = np.random.default_rng(SEED)
    if nbytes % 4 == 0:
        random.standard_normal(out=block.view(np.float32), dtype=np.float32)
    else:
        block[:] = random.integers(0, 256, nbytes, np.uint8)
    return block


def dense_target(shape, dtype):
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = make_block(nbytes)
    return End(memory, memory.view(dtype).reshape(shape), dtype)


def strided(shape, dtype, cut, torch_can=True):
    """A copy of cut(array) to a dense array; array has shape and dtype."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = random_block(nbytes)
    view = cut(memory.view(dtype).reshape(shape))
    return copy_work(End(memory, view, dtype),
                     dense_target(view.shape, dtype), torch_can)


def transposed(n, dtype):
    return strided((n, n), dtype, lambda a: a.T)


def channels_last(shape, dtype):
    return strided(shape, dtype, lambda a: a.transpose(0, 2, 3, 1))


def broadcast(length, shape):
    """length elements along the last axis of shape, or one everywhere. The
    view is writable only because torch warns of others."""
    step = 4 if length > 1 else 0
    return strided((length,), "float32",
                   lambda a: as_strided(a, shape,
                                        (0,) * (len(shape) - 1) + (step,)))


def reversed_rows(n, dtype):
    """torch has no negative steps; it gathers the rows by their numbers."""
    work = strided((n, n), dtype, lambda a: a[::-1], torch_can=False)
    rows = np.arange(n - 1, -1, -1)
    work.torch = by_torch(
        lambda from_, rows, to: lambda: torch.index_select(from_, 0, rows,
                                                           out=to),
        work.source.view[::-1], rows, work.target.view)
    return work


def unaligned(n, dtype, source_offset, target_offset):
    """Contiguous, with both ends off the 64 bytes of a line."""
    item = np.dtype(dtype).itemsize
    from_, to = random_block(n * item + 64), make_block(n * item + 64)
    ends = [End(memory, memory[offset:offset + n * item].view(dtype), dtype)
            for memory, offset in ((from_, source_offset),
                                   (to, target_offset))]
    return copy_work(*ends)


def pack(n):
    """n int4, one to a byte, to two a byte; by hand in NumPy and torch."""
    source = random_block(n)
    np.bitwise_and(source, 15, out=source)
    target, room = make_block(n // 2), make_block(n // 2)

    def by_numpy():
        np.left_shift(source[1::2], 4, out=room)
        np.bitwise_or(source[::2], room, out=target)

    def make(low, high, room, to):
        def run():
            torch.bitwise_left_shift(high, 4, out=room)
            torch.bitwise_or(low, room, out=to)
        return run
    return Work(End(source, source, "int4", (n,), (1,), True),
                End(target, target, "int4", (n,), (1,)), by_numpy,
                by_torch(make, source[::2], source[1::2], room, target))


def unpack(n):
    """The way back."""
    source, target = random_block(n // 2), make_block(n)

    def by_numpy():
        np.bitwise_and(source, 15, out=target[::2])
        np.right_shift(source, 4, out=target[1::2])

    def make(from_, low, high):
        def run():
            torch.bitwise_and(from_, 15, out=low)
            torch.bitwise_right_shift(from_, 4, out=high)
        return run
    return Work(End(source, source, "int4", (n,), (1,)),
                End(target, target, "int4", (n,), (1,), True), by_numpy,
                by_torch(make, source, target[::2], target[1::2]))


def swapped(n):
    """f32 in the other byte order, as in a file from another machine."""
    memory = random_block(4 * n)
    source = End(memory, memory.view(np.float32), foreign=True)
    target = dense_target((n,), "float32")
    other = source.view.view(source.view.dtype.newbyteorder())
    return Work(source, target, lambda: np.copyto(target.view, other))


def converted(n, dtype):
    """f32 to another float; NumPy has these dtypes from ml_dtypes."""
    import ml_dtypes

    source = random_block(4 * n).view(np.float32)
    as_numpy = np.dtype(getattr(ml_dtypes, dtype))
    target = make_block(n * as_numpy.itemsize)
    view = target.view(as_numpy)
    return Work(End(source, source),
                End(target, target, dtype, (n,), (1,)),
                lambda: np.copyto(view, source, casting="unsafe"),
                by_torch(lambda from_, to: (
                    lambda to=to.view(getattr(torch, dtype)): to.copy_(from_)),
                    source, target))


def small(n, kind):
    """A copy of n f32 whose cost is mostly the way to its first byte."""
    side = 1 << ((n.bit_length() - 1) // 2)
    if kind == "strided":
        return strided((2 * n,), "float32", lambda a: a[::2])
    if kind == "transposed":
        return strided((side, n // side), "float32", lambda a: a.T)
    return strided((n,), "float32", lambda a: a)


def channel_cases(quick):
    shapes = (("32x3x224x224", (2, 3, 28, 28) if quick else (32, 3, 224, 224)),
              ("8x64x56x56", (2, 8, 14, 14) if quick else (8, 64, 56, 56)))
    return [(f"{short} NCHW to NHWC, {name}", group,
             lambda shape=shape, dtype=dtype: channels_last(shape, dtype))
            for short, dtype, group in (("f32", "float32", "NCHW to NHWC"),
                                        ("u8", "uint8", None))
            for name, shape in shapes]


def large_cases(quick):
    """[(name, group of goals, function that makes it)]. quick: the same in
    small, for tests."""
    side = 128 if quick else 4096
    many = 16 * (1 << 10 if quick else MI)
    five = (4, 2, 6, 3, 5) if quick else (32, 16, 48, 24, 20)
    return [
        ("f32 4096x4096 transposed", "f32 transpose",
         lambda: transposed(side, "float32")),
        ("f32 8192x8192 transposed", "f32 transpose",
         lambda: transposed(2 * side, "float32")),
        ("u8 4096x4096 transposed", "u8 transpose",
         lambda: transposed(side, "uint8")),
        ("f32 [::2] to 16 Mi", "[::2]",
         lambda: strided((2 * many,), "float32", lambda a: a[::2])),
        *channel_cases(quick),
        ("f32 5-d permuted (3,1,4,0,2)", None,
         lambda: strided(five, "float32",
                         lambda a: a.transpose(3, 1, 4, 0, 2))),
        ("f32 broadcast, one element to 16 Mi", None,
         lambda: broadcast(1, (many,))),
        ("f32 broadcast, a row to 4096 rows", None,
         lambda: broadcast(side, (side, side))),
        ("f32 4096x4096, rows reversed", None,
         lambda: reversed_rows(side, "float32")),
        ("f32 16 Mi, elements reversed", None,
         lambda: strided((many,), "float32", lambda a: a[::-1], False)),
        ("f32 64 MiB contiguous", "contiguous",
         lambda: strided((many,), "float32", lambda a: a)),
        ("f32 64 MiB contiguous, 4 and 12 bytes off", "contiguous",
         lambda: unaligned(many, "float32", 4, 12)),
        ("u8 64 MiB contiguous, 1 and 3 bytes off", "contiguous",
         lambda: unaligned(4 * many, "uint8", 1, 3)),
        ("int4 64 Mi packed", None, lambda: pack(4 * many)),
        ("int4 64 Mi unpacked", None, lambda: unpack(4 * many)),
        ("f32 16 Mi, bytes swapped", None, lambda: swapped(many)),
        *((f"f32 16 Mi to {dtype}", "conversion",
           lambda dtype=dtype: converted(many, dtype))
          for dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2")),
    ]


def small_cases():
    return [(f"f32 {n} {kind}", "small", lambda n=n, kind=kind: small(n, kind))
            for kind in ("contiguous", "strided", "transposed") for n in SMALL]
