# SPDX-License-Identifier: Apache-2.0
"""The table of PJRT ABI facts against what plugins know themselves: what they
answer to struct_size 0, the order of their symbols, and the header that comes
with one of them, compiled. pjrt_abi_test.c holds our declarations to the table,
test_pjrt_abi.py holds the table to an independent binding.

Skipped only where a plugin is not on the machine: an oracle that cannot be
asked there is a failure.
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

HERE = pathlib.Path(__file__).parent
SITE = pathlib.Path(sysconfig.get_path("purelib"))
PLUGINS = {
    "P1": "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
    "P2": "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
    "P3": "fastatomstruct_xla_cpu/libpjrt_cpu.so",
}
# 0 and 1 return nothing, 93 looks at no size and aborts.
SILENT = (0, 1, 93)
# 57 is deprecated and 82 not supported: both say so before they look.
OTHERWISE = (57, 82)
# Misprints in the plugins' answers; the other names are those of the structs.
MISPRINTS = {
    13: "PJRT_CLient_ProcessIndex_Args",
    14: "PJRT_CLient_PlatformVersion_Args",
    21: "PJRT_Client_DefaultAssignment_Args",
    96: "PJRT_Executable_Serialize_Args",
    114: "PJRT_TopologyDescription_Attributes_Args",
}
# Slots that a plugin fills with functions of its own, named otherwise.
OWN_FUNCTIONS = {
    3: "PJRT_Plugin_Initialize_NoOp",
    4: "PJRT_Plugin_Attributes_Xla",
    82: "PJRT_CpuDeviceTopology_Create",
}
# What plugins ask for at least, of structs that grew later.
LEAST = {
    "PJRT_Device_MemoryStats_Args": {185},
    "PJRT_Executable_DeserializeAndLoad_Args": {64},
    "PJRT_Executable_GetCompiledMemoryStats_Args": {56, 112},
    "PJRT_Client_CreateErrorBuffer_Args": {96, 112},
    "PJRT_Device_PoisonExecution_Args": {49, 72},
}


def rows(name):
    with open(HERE / "data" / name, newline="") as file:
        return list(csv.DictReader(file))


def plugin(key):
    path = pathlib.Path(os.environ.get(f"ISTHMUS_{key}", SITE / PLUGINS[key]))
    if not path.exists():
        pytest.skip(f"plugin {key} is not on this machine")
    return path.resolve()


def ask(path):
    """index -> (address in the file, answer to struct_size 0)"""
    slots = rows("pjrt_slots.csv")
    done = subprocess.run(
        [sys.executable, HERE / "ask_struct_sizes.py", path, str(len(slots)),
         slots[0]["offset"], *map(str, SILENT)],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    lines = [json.loads(line) for line in done.stdout.splitlines()
             if line.startswith("[")]
    return {index: (address, answer) for index, address, answer in lines}


@pytest.fixture(scope="module", params=sorted(PLUGINS))
def asked(request):
    path = plugin(request.param)
    return request.param, path, ask(path)


def test_sizes_of_arguments__are_what_plugins_ask_for(asked):
    key, _, answers = asked
    sizes = {row["struct"]: int(row["struct_size"])
             for row in rows("pjrt_structs.csv")}
    slots = rows("pjrt_slots.csv")
    told = 0
    for index, (_, answer) in answers.items():
        if index in SILENT or index in OTHERWISE:
            continue
        assert answer is not None, (slots[index]["name"], "took struct_size 0")
        found = re.search(r"(PJRT_\w+) size: expected (\d+), got 0", answer)
        assert found, (slots[index]["name"], answer)
        name, size = slots[index]["name"] + "_Args", int(found[2])
        assert found[1] in (name, name.removesuffix("_Args"),
                            MISPRINTS.get(index))
        assert size in LEAST.get(name, {sizes[name]}), name
        told += 1
    assert told == {"P1": 133, "P2": 113, "P3": 131}[key]


def symbols(path):
    listed = subprocess.run(["nm", "--defined-only", path], text=True,
                            capture_output=True, check=True)
    few = "\n".join(line for line in listed.stdout.splitlines()
                    if "PJRT_" in line)
    plain = subprocess.run(["c++filt"], input=few, text=True,
                           capture_output=True, check=True)
    found = {}
    for line in plain.stdout.splitlines():
        parts = re.match(r"([0-9a-f]+) \w (.*?)(\(|$)", line)
        if parts and "PJRT_" in parts[2]:
            name = parts[2].split("::")[-1]
            found.setdefault(int(parts[1], 16), set()).add(name)
    return found


def test_order_of_slots__is_that_of_the_symbols(asked):
    key, path, answers = asked
    names = symbols(path)
    if key == "P1":
        assert not names, "P1 is stripped no more: ask it"
        return
    for index, row in enumerate(rows("pjrt_slots.csv")):
        if index not in answers:
            continue
        have = names.get(answers[index][0], set())
        assert have & {row["name"], OWN_FUNCTIONS.get(index)}, (index, have)
    assert len(answers) == {"P2": 118, "P3": 136}[key]


# ---- the header of 0.81

def body_of(header, structure):
    found = re.search(rf"^(?:typedef )?struct {structure} {{\n(.*?)^}}", header,
                      re.M | re.S)
    return re.sub(r"//.*", "", found[1]) if found else None


def has_field(body, field):
    return re.search(rf"(\b|\*){field}\s*(\[\w+\])?;|\(\*{field}\)\(|"
                     rf"_PJRT_API_STRUCT_FIELD\({field}\);", body)


def claims_of_structs(header):
    """Compile-time claims about each field that both sides know."""
    shorter = {"PJRT_Device_MemoryStats_Args", "PJRT_ExecuteOptions",
               "PJRT_Executable_GetCompiledMemoryStats_Args",
               "PJRT_Executable_DeserializeAndLoad_Args", "PJRT_Api"}
    known = set()
    for row in rows("pjrt_structs.csv"):
        name, field = row["struct"], row["field"]
        body = body_of(header, name)
        if body is None or not has_field(body, field):
            continue
        yield (f"offsetof({name}, {field}) == {row['offset']} && "
               f"sizeof((({name} *)0)->{field}) == {row['size']}")
        if name in known or name in shorter:
            continue
        known.add(name)
        yield f"sizeof({name}) == {row['sizeof']}"
        if f"PJRT_DEFINE_STRUCT_TRAITS({name}," in header:
            yield f"{name}_STRUCT_SIZE == {row['struct_size']}"


def claims_of_enums(header):
    for row in rows("pjrt_enums.csv"):
        if re.search(rf"^\s+{row['name']}\b", header, re.M):
            yield f"{row['name']} == {row['value']}"


def compiles(tmp_path, header, claims):
    lines = ["#include <stddef.h>", f'#include "{header}"']
    lines += [f'_Static_assert({claim}, "{claim}");' for claim in claims]
    source = tmp_path / "claims.c"
    source.write_text("\n".join(lines) + "\n")
    done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", source],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_header_of_a_plugin__says_the_same(tmp_path):
    path = plugin("P2").parent / "include" / "pjrt_c_api.h"
    header = path.read_text()
    structs = list(claims_of_structs(header))
    enums = list(claims_of_enums(header))
    assert len(structs) > 1000 and len(enums) > 70, (len(structs), len(enums))
    compiles(tmp_path, path, structs + enums)


def test_claim_that_is_wrong__does_not_compile(tmp_path):
    path = plugin("P2").parent / "include" / "pjrt_c_api.h"
    with pytest.raises(AssertionError, match="static assertion failed"):
        compiles(tmp_path, path, ["sizeof(PJRT_NamedValue) == 57"])
