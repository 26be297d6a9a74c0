# SPDX-License-Identifier: Apache-2.0
"""Memory for the copy bench: large blocks of their own pages, huge pages if
the system gives them, touched before anything is timed."""

import mmap

import numpy as np

HUGE = 2 << 20  # bytes of a huge page on x86-64 and aarch64
POISON = 0xA5


def make_block(nbytes, huge=True):
    """A byte array of nbytes that starts at a huge page and is warm: every
    page of it is there. Memory that NumPy makes has huge pages too."""
    pages = mmap.mmap(-1, nbytes + HUGE,
                      flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    advice = "MADV_HUGEPAGE" if huge else "MADV_NOHUGEPAGE"
    if hasattr(mmap, advice):
        try:
            pages.madvise(getattr(mmap, advice))
        except OSError:
            pass  # a kernel without huge pages
    whole = np.frombuffer(pages, np.uint8)
    start = -whole.ctypes.data % HUGE
    block = whole[start:start + nbytes]
    block[:] = POISON
    return block


def poison(block):
    block[:] = POISON


def huge_pages():
    """How this system gives huge pages, as it says itself, or "unknown"."""
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    try:
        with open(path) as file:
            text = file.read()
    except OSError:
        return "unknown"
    return text.split("[", 1)[-1].split("]", 1)[0]
