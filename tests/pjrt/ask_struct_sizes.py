# SPDX-License-Identifier: Apache-2.0
"""Asks a plugin for the size of each slot's arguments, by calling the slot with
struct_size 0, and where its functions lie. A program of its own: a plugin that
cannot be asked so may end the process.

ask_struct_sizes.py PLUGIN SLOT_COUNT FIRST_SLOT SKIPPED...
Prints one JSON line for each slot: index, address, answer (a text, or null
where the slot took the call).
"""

import ctypes
import json
import sys


def message_of(slots, error):
    args = (ctypes.c_size_t * 5)(40, 0, error, 0, 0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(slots[1])(ctypes.addressof(args))
    text = ctypes.string_at(args[3], args[4]).decode() if args[3] else ""
    destroy = (ctypes.c_size_t * 3)(24, 0, error)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(slots[0])(ctypes.addressof(destroy))
    return text


def base_of(path):
    """Where a shared library was mapped, for what `nm` tells of it."""
    with open("/proc/self/maps") as maps:
        return min(int(line.split("-")[0], 16) for line in maps if path in line)


def main(path, count, first, *skipped):
    library = ctypes.CDLL(path)
    library.GetPjrtApi.restype = ctypes.c_void_p
    table = library.GetPjrtApi()
    size = ctypes.c_size_t.from_address(table).value
    count = min(int(count), (size - int(first)) // 8)
    slots = (ctypes.c_size_t * count).from_address(table + int(first))
    base = base_of(path)
    for index in range(count):
        answer = None
        if index not in map(int, skipped):
            args = (ctypes.c_size_t * 64)()
            call = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)
            error = call(slots[index])(ctypes.addressof(args))
            answer = message_of(slots, error) if error else None
        print(json.dumps([index, slots[index] - base, answer]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
