# SPDX-License-Identifier: Apache-2.0
"""The promises of catalog/: valid, one to one with the codes, frozen, fresh."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import written_messages  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted((ROOT / "catalog/isthmus").glob("*.toml"))


def load_tool():
    path = ROOT / "tools/catalog_to_c.py"
    spec = importlib.util.spec_from_file_location("catalog_to_c", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()
SCHEMA = json.loads((ROOT / "catalog/record.schema.json").read_text())
LITERALS = written_messages.literals(ROOT)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def record(path):
    return tool.load(path)


def frozen():
    lines = (ROOT / "catalog/ids.txt").read_text().splitlines()
    return [tuple(line.split()) for line in lines if line[0] != "#"]


def texts(entry):
    """Every text of an entry that a person reads."""
    for value in entry.values():
        yield from value if isinstance(value, list) else [value]


def test_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_entry_is_valid(path):
    errors = [e.json_path + ": " + e.message
              for e in VALIDATOR.iter_errors(record(path))]
    assert errors == []


@pytest.mark.parametrize("field, value", [
    ("id", "x"), ("repo", ""), ("slug", "A b"), ("errorCode", None),
    ("githubUrl", "https://github.com/a/b"), ("solutions", []),
    ("documentation", "two\nlines"), ("schemaVersion", 1),
    ("exampleFix", "no halves"),
])
def test_schema_refuses_what_is_no_entry(field, value):
    entry = record(OWN[0])
    entry[field] = value
    assert not VALIDATOR.is_valid(entry)


def test_reader_refuses_an_unknown_field(tmp_path):
    path = tmp_path / "entry.toml"
    path.write_text('id = "0"\nmeaning = "x"\n')
    with pytest.raises(ValueError, match="meaning"):
        tool.load(path)


def test_codes_and_files_are_one_to_one():
    named = {(number, name) for name, number in tool.codes()}
    found = {(number, entry["errorCode"].removeprefix("IST_ERR_"))
             for number, entry in tool.own()}
    assert found == named
    assert len(OWN) == len(named)


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_file_name_is_number_and_slug(path):
    number, slug = path.stem.split("-", 1)
    entry = record(path)
    assert entry["slug"] == slug
    numbers = {f"IST_ERR_{name}": n for name, n in tool.codes()}
    assert numbers[entry["errorCode"]] == int(number)


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_id_is_the_hash_of_repo_and_slug(path):
    entry = record(path)
    assert entry["id"] == tool.entry_id(entry["repo"], entry["slug"])


def test_ids_are_frozen():
    found = {(e["id"], e["repo"], e["slug"]) for _, e in tool.own()}
    assert set(frozen()) == found, "ids.txt and catalog/ differ"
    assert len(frozen()) == len({line[0] for line in frozen()})


def test_the_first_ids_are_what_they_were():
    assert tool.entry_id("isthmus", "argument") == "5d06645c40abf6b6"
    assert tool.entry_id("isthmus", "shape") == "9a3af4db8bbe4b4d"


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_pattern_finds_its_own_message_only(path):
    entry = record(path)
    found = [other["slug"] for _, other in tool.own()
             if re.search(entry["messagePattern"], other["errorMessage"])]
    assert found == [entry["slug"]]


def form_score(form, text):
    """How well a message has an entry's form: the length of the literal parts
    of the form, all of which stand in it in order; else 0."""
    score = at = 0
    for part in re.split(r"\{\w+\}", form):
        found = text.find(part, at)
        if found < 0:
            return 0
        score += len(part)
        at = found + len(part)
    return score


def test_no_message_is_taken_for_another_code():
    forms = {e["errorCode"]: e["errorMessage"] for _, e in tool.own()}
    wrong, right = [], 0
    for code, path, message in written_messages.written(ROOT):
        scores = {name: form_score(form, message)
                  for name, form in forms.items()}
        best = max(scores, key=scores.get)
        if scores[best] and best != code:
            wrong.append(f"{path}: {message!r} of {code} reads as {best}")
        right += bool(scores[best]) and best == code
    assert wrong == []
    assert right > 50, "the messages are no longer found"


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_form_is_made_of_words_that_are_written(path):
    parts = re.split(r"\{\w+\}|; needs |PJRT_\w+", record(path)["errorMessage"])
    lost = [part for part in parts if part.strip(" :;") not in LITERALS]
    # A broken promise of our own has no message until one is broken.
    assert lost == [] or path.stem == "901-internal"


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.stem)
def test_texts_are_plain(path):
    entry = record(path)
    for text in filter(None, (t for t in texts(entry) if isinstance(t, str))):
        assert text.isascii()
        assert text == text.strip() and "  " not in text.split("\n")[0]


def test_generated_texts_are_fresh():
    assert (ROOT / tool.OUTPUT).read_text() == tool.render(), (
        "catalog_text.def is stale: run tools/catalog_to_c.py")


def test_check_says_when_the_texts_are_stale(tmp_path):
    for part in ("catalog", "tools", "src/base"):
        shutil.copytree(ROOT / part, tmp_path / part)
    command = [sys.executable, tmp_path / "tools/catalog_to_c.py", "--check"]
    assert subprocess.run(command).returncode == 0
    entry = tmp_path / "catalog/isthmus" / OWN[0].name
    entry.write_text(entry.read_text() + 'backgroundTag = "x"\n')
    assert subprocess.run(command).returncode == 0, "not a compiled-in field"
    text = entry.read_text()
    entry.write_text(text.replace("NULL", "null"))
    stale = subprocess.run(command, capture_output=True, text=True)
    assert stale.returncode == 1 and "run tools/catalog_to_c.py" in stale.stderr


@pytest.mark.parametrize("text", [
    "plain", 'a "quoted" \\ word', "two\nlines", "what??!", "x" * 200,
    "word " * 60, "a tab\tand %s %d",
])
def test_c_strings_say_what_the_catalog_says(tmp_path, text):
    source, binary = tmp_path / "say.c", tmp_path / "say"
    source.write_text("#include <stdio.h>\nint main(void) {\n  return fputs(\n"
                      f"         {tool.c_string(text)}, stdout) < 0;\n}}\n")
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-trigraphs",
                    "-Wno-trigraphs", source, "-o", binary], check=True)
    assert subprocess.run([binary], capture_output=True,
                          text=True).stdout == text
