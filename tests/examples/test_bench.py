# SPDX-License-Identifier: Apache-2.0
"""Every bench runs, with a few repetitions, and leaves a whole result. No
number is asserted: what a bench measures is for reading."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "run.py"
FIELDS = {"name", "what", "commit", "command", "cpu", "kernel", "versions",
          "seed", "repetitions", "cases"}


def bench(*arguments, **more):
    return subprocess.run([sys.executable, BENCH, *map(str, arguments)],
                          text=True, capture_output=True, **more)


def check_result(path, name):
    result = json.loads(path.read_text())
    assert set(result) == FIELDS and result["name"] == name
    assert result["repetitions"] == {"rounds": 3, "iterations": 5}
    assert {"isthmus", "python", "cc"} <= set(result["versions"])
    assert result["command"].startswith("bench/run.py")
    assert result["cases"]
    for case in result["cases"]:
        for side in ("ours", "peer"):
            assert 0 < case[side]["min_ns"] <= case[side]["median_ns"]
        assert case["ratio_min"] > 0 and case["ratio_median"] > 0
    return result


def run_quickly(name, build, folder):
    """One bench with few repetitions: (what it said, its checked result)."""
    done = bench(name, "--rounds", 3, "--iterations", 5, "--quick", "--out",
                 folder, env={**os.environ, "ISTHMUS_BUILD": str(build)})
    assert done.returncode == 0, done.stderr
    result = check_result(folder / f"{name}.json", name)
    for case in result["cases"]:
        assert case["name"] in done.stdout
    return done, result


@pytest.mark.parametrize("name", ["host", "view", "export", "exchange",
                                  "roofline", "pjrt"])
def test_each_bench__runs_and_records_all_fields(name, build, tmp_path):
    run_quickly(name, build, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.json"]


def test_the_copy_bench__records_goals_and_draws(build, tmp_path):
    done, result = run_quickly("copy", build, tmp_path)
    goals = {case["group"] for case in result["cases"] if case["goals"]}
    groups = {case["group"] for case in result["cases"] if case["group"]}
    if importlib.util.find_spec("torch"):
        assert goals == groups
    drawn = (tmp_path / "copy.png").is_file()
    assert drawn or "no chart: matplotlib is not installed" in done.stderr
    assert drawn == bool(importlib.util.find_spec("matplotlib"))


def test_the_pjrt_bench__judges_by_the_least_of_the_rounds():
    sys.path.insert(0, str(BENCH.parent))
    try:
        from bench_pjrt import judge
    finally:
        sys.path.remove(str(BENCH.parent))
    case = {"name": "import a view, P", "ours": {"min_ns": 900},
            "difference_min_ns": 101, "ratio_min": 1.1}
    assert [goal["met"] for goal in judge(case)] == [False]
    case["difference_min_ns"] = 100
    assert [goal["met"] for goal in judge(case)] == [True]
    assert judge({**case, "name": "open again"}) == []


WRONG = """
import bench_copy, numpy
from copy_cases import small
work = small(64, "transposed")
target = work.target.memory.view(numpy.float32)
bench_copy.check_values("a case", work, {"ours": lambda times: (
    work.numpy(), target.__setitem__(7, 0.0))})
"""


def test_a_side_that_copies_wrongly__ends_the_copy_bench():
    done = subprocess.run([sys.executable, "-c", WRONG], cwd=BENCH.parent,
                          text=True, capture_output=True)
    assert done.returncode == 1
    assert "a case: ours wrote a wrong byte at " in done.stderr


def test_list__names_every_bench_that_is_tested_here():
    named = {line.split()[0] for line in bench("--list").stdout.splitlines()}
    tested = test_each_bench__runs_and_records_all_fields.pytestmark[0].args[1]
    assert named == {*tested, "copy"}


def test_compare__shows_both_ratios(tmp_path):
    paths = []
    for number, ratio in ((1, 1.5), (2, 1.25)):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(
            {"commit": "0" * 40,
             "cases": [{"name": "a case", "ratio_min": ratio}]}))
    done = bench("--compare", *paths)
    assert done.returncode == 0 and "a case: 1.50 -> 1.25" in done.stdout


def test_unknown_bench__is_refused_with_the_names():
    done = bench("nothing_such")
    assert done.returncode == 2 and "host, view, export" in done.stderr


def test_recorded_results__are_whole():
    for path in (ROOT / "bench" / "results").glob("*.json"):
        result = json.loads(path.read_text())
        assert set(result) == FIELDS and result["name"] == path.stem
        assert result["commit"] and result["cases"]
