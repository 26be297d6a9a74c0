# SPDX-License-Identifier: Apache-2.0
"""isthmus explain gives the entries of the catalog, however they are named."""

import json
import tomllib

import pytest

import cli_env

ENTRIES = {}
for path in sorted((cli_env.ROOT / "catalog" / "isthmus").glob("*.toml")):
    ENTRIES[int(path.name.split("-")[0])] = tomllib.loads(path.read_text())


def explain(folder, *words, data=b""):
    done = cli_env.run(folder, "explain", "--json", *words, data=data)
    assert (done.code, done.err) == (0, b"")
    return json.loads(done.out)


@pytest.mark.parametrize("code", ENTRIES)
def test_each_code__is_explained_by_number_name_and_slug(code, tmp_path):
    entry = ENTRIES[code]
    name = entry["errorCode"]
    found = explain(tmp_path, str(code))
    assert len(found) == 1
    assert (found[0]["code"], found[0]["name"], found[0]["slug"]) == (
        code, name, entry["slug"])
    assert found[0]["title"].split() == entry["errorMessage"].split()
    assert found[0]["meaning"].split() == entry["documentation"].split()
    assert found[0]["solution"].split() == " ".join(entry["solutions"]).split()
    short = name.removeprefix("IST_ERR_")
    for word in (name, short, short.lower(), entry["slug"]):
        assert explain(tmp_path, word) == found


@pytest.mark.parametrize("code", ENTRIES)
def test_each_message_with_its_name__is_explained(code, tmp_path):
    name = ENTRIES[code]["errorCode"]
    found = explain(tmp_path, f"isthmus: move: it failed [{name} {code}]")
    assert [entry["code"] for entry in found] == [code]


def test_a_message_without_its_name__is_found_by_its_form(tmp_path):
    cli_env.make_files(tmp_path)
    for words in (["move", "none.npy", "b.npy"], ["move", "cut.npy", "b.npy"],
                  ["move", "a.npy", "folder/"],
                  ["route", "host", "template#9"]):
        done = cli_env.run(tmp_path, *words)
        message, _, name = done.err.decode().rstrip("]\n").rpartition(" [")
        found = explain(tmp_path, message)
        assert f"{found[0]['name']} {found[0]['code']}" == name


def test_a_log__is_explained_error_by_error(tmp_path):
    log = b"""Traceback (most recent call last):
  File "x.py", line 1
isthmus.Error: it could not cross [IST_ERR_COPY_NEEDED 104]
NOT_IST_ERR_SHAPE, IST_ERR_SHAPES and IST_ERR_ are none; IST_ERR_ARITY is
other: call failed: reason (code 3), and cannot open x: y; needs a file that
isthmus: move: cannot open a.npy: gone; needs a file that can be read
again [IST_ERR_COPY_NEEDED 104] \xff\xfe and [IST_ERR_OVERFLOW 203]"""
    found = explain(tmp_path, "-", data=log)
    assert [entry["code"] for entry in found] == [104, 113, 403, 203]


def test_an_unquoted_message__is_one_text(tmp_path):
    found = explain(tmp_path, *"it failed [IST_ERR_IO 402] here".split())
    assert [entry["code"] for entry in found] == [402]


def test_the_text__holds_every_word_within_the_width(tmp_path):
    done = cli_env.run(tmp_path, "explain", "104")
    lines = done.out.decode().splitlines()
    assert lines[0] == "IST_ERR_COPY_NEEDED 104 (copy-needed)"
    assert max(map(len, lines)) < 80
    words = done.out.decode().split()
    for text in [ENTRIES[104]["documentation"], *ENTRIES[104]["solutions"]]:
        wanted = text.split()
        assert any(words[i:i + len(wanted)] == wanted
                   for i in range(len(words)))
