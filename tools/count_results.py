# SPDX-License-Identifier: Apache-2.0
"""Counts JUnit files of all suites and prints the one closing line.

Arguments: a folder with one folder of *.xml a suite, then NAME=EXIT for each
suite that was run. A suite that left no result, or that ended badly with no
failed result to show for it, counts as one failed test.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as ET


def read_suite(folder):
    """(passed, failed names, skipped (name, reason)) of one suite."""
    passed, failed, skipped = 0, [], []
    for path in sorted(folder.glob("*.xml")):
        try:
            cases = list(ET.parse(path).iter("testcase"))
        except ET.ParseError as error:
            failed.append(f"{path.name}: not XML: {error}")
            continue
        for case in cases:
            name = f"{case.get('classname') or path.stem}.{case.get('name')}"
            if case.find("failure") is not None or case.find(
                    "error") is not None:
                failed.append(name)
            elif case.find("skipped") is not None:
                skip = case.find("skipped")
                reason = skip.get("message") or "no reason"
                if reason == "collection skipped":
                    reason = (skip.text or reason).strip("()'\" ")
                reason = reason if len(reason) < 200 else reason[:197] + "..."
                skipped.append((name, reason))
            else:
                passed += 1
    return passed, failed, skipped


def main(root, suites):
    total = [0, 0, 0]
    reasons = collections.Counter()
    for suite in suites:
        name, code = suite.split("=")
        passed, failed, skipped = read_suite(pathlib.Path(root) / name)
        if not passed + len(failed) + len(skipped):
            failed.append(f"{name}: left no result")
        elif code != "0" and not failed:
            failed.append(f"{name}: ended with {code} and no failed test")
        for test in failed:
            print(f"FAILED {name}: {test}")
        reasons.update((name, reason) for _, reason in skipped)
        print(f"{name}: {passed} passed, {len(failed)} failed, "
              f"{len(skipped)} skipped".replace(": ", " suite: ", 1))
        for i, n in enumerate((passed, len(failed), len(skipped))):
            total[i] += n
    for (name, reason), times in sorted(reasons.items()):
        print(f"SKIPPED {name} ({times}): {reason}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
