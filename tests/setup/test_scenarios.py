"""What a run of some cases of a scenario asks for, and which tier runs what."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
import spark_home
from harness import scenarios
from harness.scenarios import model

TESTS = Path(__file__).resolve().parents[1]
VERSIONS = spark_home.all_versions()
MOST_APPLICATIONS = 14
KNOWN = {scenario.name: scenario for scenario in scenarios.SCENARIOS}


@pytest.mark.parametrize(
    ("name", "cases", "asked"),
    [
        ("rows-zstd", ["sqlJoin"], ("rowReaders", "rowWriters")),
        (
            "rows-zstd",
            ["mostPartitions"],
            ("rowReaders", "rowWriters", "sparkWriters.partitions"),
        ),
        ("rows-zstd", ["mostPartitions", "streams"], KNOWN["rows-zstd"].must_count),
        ("rows-zstd", ["groupByKey"], ()),
        ("rows-zstd", ["streamsSorted"], ("groupedReaders",)),
        ("io-encryption", ["groupByKey"], ()),
        ("network-crypto", ["groupByKey"], ("sealedChannel", "remoteBlocks.tcp")),
    ],
)
def test_a_run_of_some_cases_asks_for_their_counters(name, cases, asked):
    narrowed = KNOWN[name].only(cases)
    assert narrowed.cases == [case for case in KNOWN[name].cases if case in cases]
    assert narrowed.must_count == asked


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_counter_of_a_whole_scenario_is_left_out(scenario):
    assert scenario.only(scenario.cases) is scenario
    few = [case for case in scenario.cases if case in (scenario.few or scenario.cases)]
    for cases in (scenario.cases, few):
        # The table has a case for each counter: as if one more case had been left out.
        wider = replace(scenario, cases=[*cases, "leftOut"])
        assert wider.only(cases).must_count == scenario.must_count


def test_cases_of_records_exist():
    named = {case for scenario in scenarios.SCENARIOS for case in scenario.cases}
    unknown = model.OF_RECORDS - named
    assert not unknown


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
        for version in VERSIONS
        for scenario in scenarios.SCENARIOS
        if version.depth in scenario.depths
        and scenario.version in ("", version.name)
        and int(version.spark[0]) >= scenario.first_spark
        for case in scenario.cases
        if version.depth == "full" or not scenario.few or case in scenario.few
    }
    assert set().union(*tiers.values()) == exist
    # And no scenario is for no version.
    assert {name for _, name, _ in exist} == set(KNOWN)


def test_two_tiers_together_are_one_application():
    both = scenarios.applications(scenarios.TEST, scenarios.ALL)
    names = [(version.name, scenario.name) for version, scenario in both]
    assert len(names) == len(set(names))
    for version, scenario in both:
        if version.depth == "full" and scenario.tier == scenarios.ALL:
            assert scenario.cases == KNOWN[scenario.name].cases


def test_the_first_tier_is_small_and_says_what_only_it_finds():
    first = scenarios.applications(scenarios.TEST)
    assert len(first) <= MOST_APPLICATIONS
    finds = [scenario.finds for _, scenario in first]
    assert all(finds)
    assert len(set(finds)) == len(finds)
    assert {scenario.name for _, scenario in first} == {
        scenario.name for scenario in scenarios.SCENARIOS if scenario.finds
    }


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS, ids=lambda scenario: scenario.name)
def test_its_words_name_what_there_is(scenario):
    assert {*scenario.first, *scenario.few} <= set(scenario.cases)
    assert scenario.tier in scenarios.TIERS
    assert scenario.tier != scenarios.TEST
    assert not scenario.first or scenario.finds
    assert set(scenario.depths) <= set(model.DEPTHS)


def test_no_counter_is_asked_for_in_no_tier():
    asked = {scenario.name: set() for scenario in scenarios.SCENARIOS}
    for tier in scenarios.TIERS:
        for _, narrowed in scenarios.applications(tier):
            asked[narrowed.name] |= {*narrowed.must_count}
    assert asked == {scenario.name: {*scenario.must_count} for scenario in scenarios.SCENARIOS}


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
    others = "".join(
        path.read_text()
        for folder in ("spark", "yarn", "softroce")
        for path in TESTS.glob(f"{folder}/*.py")
        if path.name != "test_jobs.py"
    )
    left = {case for case in registered - named if f'"{case}"' not in others}
    assert not left


def test_smoke_has_scenarios_of_each_version():
    for version in VERSIONS:
        names = {s.name for _, s in scenarios.named(scenarios.SMOKE, [version], full=False)}
        assert {"smoke", "network-crypto"} <= names
        assert ("ssl-rpc" in names) == (version.name[0] != "3")


def test_an_unknown_scenario_is_named():
    with pytest.raises(SystemExit, match="unknown scenario smok; there are: smoke, default"):
        scenarios.named(["smok"], VERSIONS, full=False)
