# SPDX-License-Identifier: Apache-2.0
"""Runs each C test executable of a build and leaves JUnit files of them all.

A test that crashes, hangs or writes no results becomes a failed result, so
that counting the files is counting the truth. With --prefix the tests run
under an emulator or a checker. An executable whose source is gone is left
over from an older build and not run.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

# A guard against a hang, far above what any test needs under valgrind.
GUARD_SECONDS = 3600


def blocks(text):
    """The <testsuites> documents in a text (cmocka's second group)."""
    return re.findall(r"<testsuites>.*?</testsuites>", text, re.S)


def read_results(folder, stem, stderr):
    """All results one executable left, as a list of testcase elements."""
    texts = [path.read_text(errors="replace")
             for path in sorted(folder.glob(stem + ".*.raw"))]
    cases = []
    for block in blocks("\n".join(texts) + stderr):
        block = re.sub(r"[^\t\n\x20-\x7e\x80-\uffff]", "?", block)
        try:
            cases += ET.fromstring(block).iter("testcase")
        except ET.ParseError as error:
            cases.append(failed(f"{stem} results", f"not XML: {error}"))
    return cases


def failed(name, text):
    case = ET.Element("testcase", name=name)
    ET.SubElement(case, "failure", message=text.splitlines()[0]).text = text
    return case


def outcome(code):
    """In words, how a process ended."""
    if code is None:
        return f"hung for {GUARD_SECONDS} s"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with {code}"


def run(executable, args):
    """Runs one executable; returns its testsuite element and its output."""
    folder = pathlib.Path(args.out)
    stem = f"{executable.parent.name}.{executable.name}"
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="xml",
               CMOCKA_XML_FILE=str(folder / (stem + ".%g.raw")))
    command = shlex.split(args.prefix) + [str(executable)]
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True,
                              errors="replace", timeout=GUARD_SECONDS)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        code, out, err = None, str(late.stdout), str(late.stderr)
    cases = read_results(folder, stem, err)
    bad = any(case.find("failure") is not None
              or case.find("error") is not None for case in cases)
    crashed = code is None or code < 0
    if not cases or crashed or (code != 0 and not bad):
        tail = "\n".join((out + err).splitlines()[-40:])
        cases.append(failed(f"{stem} ends well", f"{outcome(code)}\n{tail}"))
        bad = True
    reasons = " / ".join(dict.fromkeys(filter(str.strip, out.splitlines())))
    for case in cases:
        skip = case.find("skipped")
        if skip is not None:
            skip.set("message", reasons or "no reason printed")
    suite = ET.Element("testsuite", name=f"{args.suite}.{stem}")
    suite.extend(cases)
    return stem, suite, bad, out + err


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    tests = [path for path in
             sorted(pathlib.Path(args.build).resolve().glob("tests/*/*_test"))
             if pathlib.Path("tests", path.parent.name,
                             path.name + ".c").exists()]
    any_bad = False
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for stem, suite, bad, output in pool.map(
                lambda test: run(test, args), tests):
            root = ET.Element("testsuites")
            root.append(suite)
            ET.ElementTree(root).write(
                pathlib.Path(args.out) / (stem + ".xml"), encoding="utf-8")
            if bad:
                any_bad = True
                print(f"--- {args.suite} {stem}\n{output[-6000:]}")
                for failure in suite.iter("failure"):
                    print(failure.text)
    return 1 if any_bad or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
