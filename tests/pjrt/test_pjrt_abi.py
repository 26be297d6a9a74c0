# SPDX-License-Identifier: Apache-2.0
"""The table of PJRT ABI facts against the ctypes layouts of an independent
binding (the wheel pypjrt). abi_test.c holds our C declarations to the table."""

import csv
import ctypes
import importlib
import importlib.util
import pathlib

import pytest

DATA = pathlib.Path(__file__).parent / "data"


def rows(name):
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def peer():
    # It comes with the plugins: where those are, it has to be.
    plugins = ("lammps_jax_pjrt_cpu", "xla_plugins", "fastatomstruct_xla_cpu")
    if not any(importlib.util.find_spec(name) for name in plugins):
        pytest.skip("no plugin wheel is installed, and pypjrt neither")
    return importlib.import_module("pypjrt._abi.pjrt_0_114")


def members(structure):
    """name -> (offset, size), anonymous unions folded into their struct."""
    found = {}
    for name, *_ in structure._fields_:
        field = getattr(structure, name)
        found[name] = (field.offset, field.size)
        kind = dict((n, t) for n, t, *_ in structure._fields_)[name]
        if isinstance(kind, type) and issubclass(kind, ctypes.Union):
            for inner, *_ in kind._fields_:
                at = getattr(kind, inner)
                found[inner] = (field.offset + at.offset, at.size)
    return found


def test_structs__equal_the_peer_field_for_field(peer):
    compared = 0
    for row in rows("pjrt_structs.csv"):
        structure = getattr(peer, row["struct"], None)
        if structure is None or not hasattr(structure, "_fields_"):
            continue
        have = members(structure)
        name = row["field"]
        assert name in have, (row["struct"], name, sorted(have))
        want = (int(row["offset"]), int(row["size"]))
        assert have[name] == want, (row["struct"], name)
        assert ctypes.sizeof(structure) == int(row["sizeof"]), row["struct"]
        compared += 1
    assert compared > 1000


def test_slots__are_in_the_order_of_the_peer(peer):
    table = [
        name
        for name, *_ in peer.PJRT_Api._fields_
        if name.startswith("PJRT_")
    ]
    ours = rows("pjrt_slots.csv")
    assert [row["name"] for row in ours] == table
    for row in ours:
        field = getattr(peer.PJRT_Api, row["name"])
        assert field.offset == int(row["offset"]), row["name"]
