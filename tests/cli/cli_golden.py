# SPDX-License-Identifier: Apache-2.0
"""Golden files of the command: tests/golden/cli/NAME.txt.

A file holds one or more runs. Each begins with "$ isthmus WORDS", split as a
shell does. Then come "[exit N]" and, where there is any, "[stdout]" and
"[stderr]", each followed by its lines. Lines that begin with # before the first
run say what the file is about. Every run starts in a fresh folder that holds
the files of cli_env.make_files; "$ isthmus WORDS < FILE" feeds a file of it.

What differs between machines is masked, on both sides, by these rules:
  the paths of the plugins         $P1 $P2 $P3 $LYING (in the words too)
  the version of isthmus           $VERSION
  doctor's line on the machine     $MACHINE
  a plugin's words on its version  $WORDS
  times                            # ms, and # in JSON's "seconds"
  lines that a plugin logs         left out of [stderr]

ISTHMUS_GOLDEN=write in the environment writes the files anew.
"""

import os
import re
import shlex
from typing import NamedTuple

import cli_env

GOLDEN = cli_env.ROOT / "tests" / "golden" / "cli"
WRITE = os.environ.get("ISTHMUS_GOLDEN") == "write"


class Run(NamedTuple):
    line: str
    expected: str


class Golden(NamedTuple):
    head: str
    runs: list


def read(path):
    head, *parts = re.split(r"^\$ isthmus", path.read_text(), flags=re.M)
    runs = []
    for part in parts:
        line, _, expected = part.partition("\n")
        runs.append(Run(line.strip(), expected.rstrip("\n")))
    return Golden(head, runs)


def names():
    """$NAME: path, for the plugins that words and output may name."""
    known = {"$P1": "P1", "$P2": "P2", "$P3": "P3"}
    found = {mark: os.environ.get("ISTHMUS_" + name)
             for mark, name in known.items()}
    found["$LYING"] = cli_env.LYING if os.path.exists(cli_env.LYING) else None
    return found


def missing(golden):
    """The plugins that a golden file names and that are not here."""
    words = " ".join(run.line for run in golden.runs)
    return [mark for mark, path in names().items()
            if mark in words and not path]


def version():
    text = (cli_env.ROOT / "include/isthmus/version.h").read_text()
    return re.search(r'IST_VERSION_STRING "([^"]+)"', text).group(1)


def mask(text):
    for mark, path in names().items():
        if path:
            text = text.replace(path, mark)
    text = text.replace(str(cli_env.BUILD / "isthmus-probe"), "$PROBE")
    text = re.sub(r"^\w+ \S+ \S+, \d+ processors, .*$", "$MACHINE", text,
                  flags=re.M)
    text = re.sub(r'"machine": \{[^}]*\}', '"machine": "$MACHINE"', text)
    text = re.sub(r"(platform (?!host|template)\S+, version ).*$", r"\1$WORDS",
                  text, flags=re.M)
    text = re.sub(r'("platform": "(?!host|template)\w+", "version": )'
                  r'"(?:\\.|[^"\\])*"', r'\1"$WORDS"', text)
    text = re.sub(r'("platform_version": )"(?:\\.|[^"\\])*"', r'\1"$WORDS"',
                  text)
    text = re.sub(r"\d+\.\d+ ms", "# ms", text)
    text = re.sub(r'("(?:compile|run|read_back|write)": )\d+\.\d+', r"\1#",
                  text)
    return re.sub(rf"(?<![\w.]){re.escape(version())}(?![\w.])", "$VERSION",
                  text)


def without_logs(text):
    """stderr without what a plugin's own logger wrote to it."""
    return re.sub(r"^(?:[IWE]\d{4} |WARNING: All log messages before absl).*\n",
                  "", text, flags=re.M)


def say(done):
    parts = [f"[exit {done.code}]"]
    for name, data in (("[stdout]", done.out), ("[stderr]", done.err)):
        text = data.decode()
        if name == "[stderr]":
            text = without_logs(text)
        if text:
            parts += [name, mask(text).rstrip("\n")]
    return "\n".join(parts)


def do(run, folder):
    """What a run says now, in the form of its golden file."""
    words = shlex.split(run.line)
    data = b""
    if "<" in words:
        at = words.index("<")
        data = (folder / words[at + 1]).read_bytes()
        words[at:at + 2] = []
    for mark, path in names().items():
        words = [word.replace(mark, path or mark) for word in words]
    return say(cli_env.run(folder, *words, data=data))


def write(path, golden, outcomes):
    parts = [f"$ isthmus {run.line}\n{outcome}\n"
             for run, outcome in zip(golden.runs, outcomes)]
    path.write_text(golden.head + "\n".join(parts))
