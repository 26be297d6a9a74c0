# SPDX-License-Identifier: Apache-2.0
"""What doctor and probe say comes from what a plugin does: when the lying
plugin lies, it changes."""

import json

import pytest

import cli_env


def memory(tmp_path, verb, rules):
    """(exit code, the record of the first memory) under some rules."""
    path = cli_env.lying()
    words = {"probe": ["probe", path], "doctor": ["doctor", "-p", path]}[verb]
    done = cli_env.run(tmp_path, *words, "--json",
                       env={"LYING_PJRT_RULES": rules})
    document = json.loads(done.out)
    backend = document if verb == "probe" else document["backends"][-1]
    return done.code, backend["devices"][0]["memories"][0]


@pytest.fixture(params=["probe", "doctor"])
def verb(request):
    return request.param


def test_memory_without_host_addresses__only_copies(verb, tmp_path):
    code, found = memory(tmp_path, verb, "")
    assert code == 0
    assert not (found["adopt"] or found["lend"] or found["host_address"])
    assert found["tried"] == {"bytes": 256, "in": "copy", "out": "copy",
                              "same_address": False, "equal": True}


def test_memory_with_host_addresses__is_viewed_both_ways(verb, tmp_path):
    code, found = memory(tmp_path, verb, "addressable=1")
    assert code == 0
    assert found["adopt"] and found["lend"] and found["host_address"]
    assert found["tried"] == {"bytes": 256, "in": "alias", "out": "alias",
                              "same_address": True, "equal": True}


@pytest.mark.parametrize("rules, lost", [
    ("drop=Client_CreateViewOfDeviceBuffer", "adopt"),
    ("unimplemented=Client_CreateViewOfDeviceBuffer", "adopt"),
    ("view=copy", "adopt"),
    ("unimplemented=Buffer_OpaqueDeviceMemoryDataPointer", "lend"),
    ("opaque=shifted", "lend"),
])
def test_what_a_plugin_does_not_do__it_cannot(rules, lost, verb, tmp_path):
    code, found = memory(tmp_path, verb, "addressable=1 " + rules)
    assert code == 0
    assert not found[lost]
    assert found["tried"]["equal"] and not found["tried"]["same_address"]


@pytest.mark.parametrize("needed", [64, 128, 1024])
def test_the_alignment__is_the_one_that_was_found(needed, verb, tmp_path):
    code, found = memory(tmp_path, verb, f"addressable=1 align={needed}")
    assert (code, found["alignment"]) == (0, needed)


def test_copies_that_lose_a_byte__are_not_believed(verb, tmp_path):
    code, found = memory(tmp_path, verb, "corrupt=1")
    assert code == 1
    assert not found["copy_out"]
    assert "error" in found["tried"]


@pytest.mark.parametrize("rules", [
    "unimplemented=Client_Compile",
    "unimplemented=LoadedExecutable_Execute",
    "program=wrong",
    "hlo=none",
])
def test_programs_that_do_not_run__are_not_promised(rules, verb, tmp_path):
    path = cli_env.lying()
    words = {"probe": ["probe", path], "doctor": ["doctor", "-p", path]}[verb]
    ends = [cli_env.run(tmp_path, *words, env={"LYING_PJRT_RULES": r}).out
            .count(b"runs no programs") for r in ("", rules)]
    assert ends[1] == ends[0] + 1


def test_the_text__changes_as_well(verb, tmp_path):
    path = cli_env.lying()
    words = {"probe": ["probe", path], "doctor": ["doctor", "-p", path]}[verb]
    said = {rules: cli_env.run(tmp_path, *words,
                               env={"LYING_PJRT_RULES": rules}).out
            for rules in ("", "addressable=1", "addressable=1 align=128")}
    assert len(set(said.values())) == len(said)


def test_a_plugin_of_the_environment__is_opened_by_doctor(tmp_path):
    path = cli_env.lying()
    done = cli_env.run(tmp_path, "doctor", "--json", env={
        "PJRT_NAMES_AND_LIBRARY_PATHS": f"liar:{path},gone:/nowhere.so"})
    backends = json.loads(done.out)["backends"]
    assert done.code == 0
    assert [b["place"] for b in backends] == [
        "host", "template", f"pjrt:{path}", "pjrt:/nowhere.so"]
    assert backends[2]["platform"] == "lying"
    assert backends[3]["error"]["name"] == "IST_ERR_PLUGIN_LOAD"


def test_a_memory_that_is_not_there__has_the_same_words_in_every_verb(tmp_path):
    cli_env.make_files(tmp_path)
    place = f"pjrt:{cli_env.lying()}#0/none"
    said = set()
    for words in (["move", "a.npy", place], ["route", "a.npy", place],
                  ["route", "host", place], ["route", place, "host"]):
        done = cli_env.run(tmp_path, *words)
        assert (done.code, done.out) == (1, b"")
        said.add(done.lines[-1].replace(f"isthmus: {words[0]}: ", ""))
    assert len(said) == 1
    assert "needs one of device, pinned_host" in said.pop()
