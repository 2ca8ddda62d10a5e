"""No test is in no tier: scenarios of Spark and their cases, and tests that need an RDMA device.

Stays because nothing else sees a case that never runs.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest
import spark_home
from harness import scenarios
from harness.scenarios import model
from programs import loaded

TESTS = Path(__file__).resolve().parents[1]


def cases_of(tier):
    return {
        (version.name, scenario.name, case)
        for version, scenario in scenarios.applications(tier)
        for case in scenario.cases
    }


def test_each_case_is_in_one_tier():
    """On each version that its scenario is for."""
    tiers = {tier: cases_of(tier) for tier in scenarios.TIERS}
    for one, other in combinations(tiers, 2):
        assert not tiers[one] & tiers[other]
    exist = {
        (version.name, scenario.name, case)
        for version in spark_home.all_versions()
        for scenario in scenarios.SCENARIOS
        if version.depth in scenario.depths
        and scenario.version in ("", version.name)
        and int(version.spark[0]) >= scenario.first_spark
        for case in scenario.cases
        if version.depth == "full" or not scenario.few or case in scenario.few
    }
    assert set().union(*tiers.values()) == exist
    assert {name for _, name, _ in exist} == {scenario.name for scenario in scenarios.SCENARIOS}


def test_no_counter_is_asked_for_in_no_tier():
    asked = {scenario.name: set() for scenario in scenarios.SCENARIOS}
    for tier in scenarios.TIERS:
        for _, narrowed in scenarios.applications(tier):
            asked[narrowed.name] |= {*narrowed.must_count}
    assert asked == {scenario.name: {*scenario.must_count} for scenario in scenarios.SCENARIOS}


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS, ids=lambda scenario: scenario.name)
def test_its_words_name_what_there_is(scenario):
    assert {*scenario.first, *scenario.few} <= set(scenario.cases)
    assert scenario.tier in set(scenarios.TIERS) - {scenarios.TEST}
    assert not scenario.first or scenario.finds
    assert set(scenario.depths) <= set(model.DEPTHS)


def test_each_case_of_the_jobs_is_in_a_scenario():
    """Or in another suite, which names it."""
    files = [*TESTS.glob("spark/jobs*/**/*.java"), TESTS / "spark" / "python" / "jobs.py"]
    pattern = r'cases\.put\("(\w+)"|^CASES = \{(.*)\}$'
    registered = set()
    for file in files:
        for java, python in re.findall(pattern, file.read_text(), re.M):
            registered |= {java} if java else set(re.findall(r'"(\w+)":', python))
    named = {case for scenario in scenarios.SCENARIOS for case in scenario.cases}
    assert named - registered == {"badConfig"}
    assert not model.OF_RECORDS - named
    others = "".join(
        path.read_text()
        for folder in ("spark", "yarn", "softroce")
        for path in TESTS.glob(f"{folder}/*.py")
        if path.name != "test_jobs.py"
    )
    assert not {case for case in registered - named if f'"{case}"' not in others}


def test_each_test_of_a_device_is_in_a_case(monkeypatch):
    """A test that is ignored because it needs a device runs nowhere else."""
    suite = loaded("softroce/suite")
    monkeypatch.setattr(suite, "with_pytest", lambda command: command)

    class Built:
        def test(self, package, test):
            return package, test

        def program(self, kind, name):
            return f"{kind} {name}"

    words = [word for case in suite.CASES for word in case.command(Built())]
    programs = set()
    for source in (suite.ROOT / "native").glob("*/**/*.rs"):
        if re.search(r'ignore = "needs .*RDMA|^over_every_fabric!', source.read_text(), re.M):
            package, folder, *rest = source.relative_to(suite.ROOT / "native").parts
            test = rest[0].removesuffix(".rs") if folder == "tests" else None
            programs.add((f"faro-{package}", test))
    # `support` is the macro, which other programs use.
    cases = {word for word in words if isinstance(word, tuple)}
    assert cases == programs - {("faro-endpoint", "support")}


def test_every_sample_and_every_ignored_bench_is_in_the_rest():
    """The tests that call `cases`, or that say `make test-all`, and no other, are the rest's."""
    found = {}
    for source in sorted((TESTS.parent / "native").glob("*/tests/**/*.rs")):
        text, parts = source.read_text(), source.relative_to(TESTS.parent / "native").parts
        name = f"native/{parts[0]} {parts[2].removesuffix('.rs')}"
        if 'ignore = "make test-all"' in text:
            # `--ignored` runs all that are.
            assert set(re.findall(r'ignore = "(.*?)"', text)) == {"make test-all"}
            found[name] = ["--ignored"]
        elif re.search(r"\bcases\(", text):
            tests = re.split(r"^fn |^pub fn ", text, flags=re.M)[1:]
            sampled = [one for one in tests if re.search(r"\bcases\(", one)]
            found[name] = [re.match(r"\w+", one)[0] for one in sampled]
    # A helper of the tests of one module.
    assert found["native/simulation simulation"] == ["pass"]
    found["native/simulation simulation"] = ["seeds::"]
    assert found == loaded("setup/cargo-tests").REST


def test_late_stays_red_where_it_was_a_defect_once():
    red = {scenario.name for scenario in scenarios.SCENARIOS if scenario.late_is_red}
    begin = ("killed", "node-service", "faults-", "decommission")
    assert {s.name for s in scenarios.SCENARIOS if s.name.startswith(begin)} <= red
