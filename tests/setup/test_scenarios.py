"""What a run of some cases of a scenario asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness import scenarios
from harness.scenarios import model

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
