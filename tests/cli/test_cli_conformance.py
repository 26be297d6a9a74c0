# SPDX-License-Identifier: Apache-2.0
"""isthmus conformance: what it finds of a plugin, and how it writes it."""

import json
import re
import xml.etree.ElementTree as xml

import pytest

import cli_env

# What each real plugin is known to fail, as docs/pjrt.md lists it. Counting
# references by threads kills a plugin in most runs and not in all.
ALWAYS = {"view_without_callback", "compile_without_options", "negative_view",
          "unknown_type", "token_type"}
KNOWN = {"P1": ALWAYS,
         "P2": ALWAYS | {"host_device_layout", "view_to_host",
                         "view_to_memory", "host_layout",
                         "copy_to_memory", "copy_to_device"},
         "P3": ALWAYS | {"host_device_layout"}}
SOMETIMES = {"reference_threads"}


def check(tmp_path, path, rules="", *words):
    done = cli_env.run(tmp_path, "conformance", path, *words,
                       env={"LYING_PJRT_RULES": rules})
    return done


def found(tmp_path, path, rules=""):
    """(exit code, {name: check}) as JSON tells them."""
    done = check(tmp_path, path, rules, "--json")
    document = json.loads(done.out)
    checks = {c["name"]: c for c in document["checks"]}
    for verdict, count in (("pass", "passed"), ("fail", "failed"),
                           ("skip", "skipped")):
        assert document[count] == sum(c["verdict"] == verdict
                                      for c in document["checks"])
    assert len(checks) == len(document["checks"])
    return done.code, checks


def failed(checks):
    return {name for name, c in checks.items() if c["verdict"] == "fail"}


def test_honest_plugin__passes_all_that_it_has(tmp_path):
    code, checks = found(tmp_path, cli_env.lying())
    assert failed(checks) == set() and code == 0
    assert checks["copy_in"]["verdict"] == "pass"
    assert checks["view_layout"]["verdict"] == "skip"
    assert all(c["reason"] for c in checks.values() if c["verdict"] != "pass")


@pytest.mark.parametrize("rules, name, words", [
    ("addressable=1 layout=reversed", "view_layout", "minor_to_major"),
    ("addressable=1 view=eager", "view_refused|view_given_back", ""),
    ("copy_in=corrupt", "host_during_call", "came out as"),
    ("corrupt=1", "host_strides", "came out as"),
    ("event_error=1", "await_twice", ""),
    ("delete=ignored", "deleted", "IsDeleted"),
    ("unimplemented=Buffer_ToHostBuffer", "copy_out", "ToHostBuffer"),
])
def test_a_lie__is_the_checks_failure(tmp_path, rules, name, words):
    code, checks = found(tmp_path, cli_env.lying(), rules)
    wrong = [n for n in failed(checks) if re.fullmatch(name, n)]
    assert code == 1 and wrong, failed(checks)
    assert words in checks[wrong[0]]["reason"]


def test_plugin_that_dies__fails_that_check_and_no_other(tmp_path):
    rules = "die=Event_Error"
    code, checks = found(tmp_path, cli_env.lying(), rules)
    assert code == 1 and failed(checks) == {"event_error"}
    assert checks["event_error"]["reason"] == (
        "it killed the process: SIGABRT: lying plugin: dies in Event_Error")
    assert checks["on_ready"]["verdict"] == "pass"


def test_plugin_that_dies_in_trials__fails_those_capabilities(tmp_path):
    dead = {"bitcast": "Buffer_Bitcast", "memory_stats": "Device_MemoryStats",
            "serialize": "Executable_Serialize"}
    rules = "addressable=1 " + " ".join(f"die={s}" for s in dead.values())
    _, honest = found(tmp_path, cli_env.lying(), "addressable=1")
    code, checks = found(tmp_path, cli_env.lying(), rules)
    assert code == 1 and failed(checks) - failed(honest) == set(dead)
    assert list(checks) == list(honest)
    for name, slot in dead.items():
        assert checks[name]["reason"] == (
            f"it killed the process: SIGABRT: lying plugin: dies in {slot}")


def test_plugin_that_does_not_open__is_one_line(tmp_path):
    for path, rules in ((cli_env.lying(), "minor=3"),
                        (cli_env.lying(), "die=Client_Create"),
                        (str(tmp_path / "missing.so"), "")):
        done = check(tmp_path, path, rules)
        assert done.code == 1 and done.out == b""
        assert len(done.lines) == 1 and "IST_ERR_" in done.lines[0]


@pytest.mark.parametrize("name", KNOWN)
def test_real_plugin__fails_what_the_table_says(tmp_path, name):
    code, checks = found(tmp_path, cli_env.plugin(name))
    assert code == 1
    assert failed(checks) - SOMETIMES == KNOWN[name]
    assert "SIGABRT" in checks["view_without_callback"]["reason"]
    row = {"P1": 0, "P2": 1, "P3": 2}[name]
    text = (cli_env.ROOT / "docs" / "pjrt.md").read_text()
    table = re.findall(r"^\| `(\w+)` \|(.*?)\|(.*?)\|(.*?)\|.*\|$", text, re.M)
    listed = {line[0] for line in table if line[0] in checks
              and line[1 + row].strip() in ("fails", "dies")}
    assert listed == KNOWN[name] | SOMETIMES


def test_junit__is_xml_with_every_check(tmp_path):
    plugin = tmp_path / "a <&\"'> plugin.so"
    plugin.symlink_to(cli_env.lying())
    done = check(tmp_path, str(plugin), "die=Event_Error", "--junit")
    assert done.code == 1
    suite = xml.fromstring(done.out).find("testsuite")
    _, checks = found(tmp_path, cli_env.lying(), "die=Event_Error")
    assert suite.get("name") == str(plugin)
    cases = suite.findall("testcase")
    assert [c.get("name") for c in cases] == list(checks)
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == 1
    assert int(suite.get("skipped")) == len(suite.findall(".//skipped"))
    failure, = suite.findall(".//failure")
    assert "SIGABRT" in failure.get("message")


def test_text__is_grouped_and_plain(tmp_path):
    done = check(tmp_path, cli_env.lying())
    assert done.code == 0 and b"\x1b" not in done.out
    lines = done.out.decode().splitlines()
    groups = [line for line in lines if re.match(r"  \w+$", line)]
    assert len(groups) == len(set(groups)) == 8
    assert re.fullmatch(r"  \d+ passed, 0 failed, \d+ skipped", lines[-1])


def test_two_forms__are_a_wrong_command_line(tmp_path):
    done = check(tmp_path, cli_env.lying(), "", "--json", "--junit")
    assert done.code == 2
