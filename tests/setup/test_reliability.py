"""The tests that docs/user/reliability.md names exist, in the tiers that it names."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

import pytest
from harness import scenarios

ROOT = Path(__file__).resolve().parents[2]
CASES = {scenario.name: scenario.cases for scenario in scenarios.SCENARIOS}


def table(header):
    """The rows of the table whose first line begins so, as lists of cells."""
    text = (ROOT / "docs" / "user" / "reliability.md").read_text()
    below = text.partition(f"\n{header}")[2].splitlines()[2:]
    lines = takewhile(lambda line: line.startswith("|"), below)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def rows():
    """What happens, and what shows it."""
    return [(cells[0], cells[-1]) for cells in table("| What happens |")]


def test_a_tier_has_the_scenarios_that_its_column_names():
    known = {tier: {s.name for _, s in scenarios.applications(tier)} for tier in scenarios.TIERS}
    for _, *columns in table("| | `make test` |"):
        for tier, cell in zip(scenarios.TIERS, columns):
            named = set(re.findall(r"`([\w.-]+)`", cell))
            assert named & CASES.keys() <= known[tier], f"not in the tier {tier}: {cell}"


def named(shown_by):
    """The pairs of scenario and case; other names in backticks are files."""
    pairs = (pair.split("/") for pair in re.findall(r"`([\w-]+/\w+)`", shown_by))
    return [(scenario, case) for scenario, case in pairs if scenario != "native"]


def on_kubernetes(shown_by):
    """The functions of tests/kubernetes that are named."""
    return re.findall(r"`(test_\w+)`", shown_by) if "`make test-kubernetes`" in shown_by else []


@pytest.mark.parametrize(("happens", "shown_by"), rows(), ids=lambda text: text[:40])
def test_what_shows_it_exists(happens, shown_by):
    pairs, functions = named(shown_by), on_kubernetes(shown_by)
    assert pairs or functions or shown_by.startswith(("not tested", "`native/")), happens
    for scenario, case in pairs:
        assert scenario in CASES, scenario
        assert case in CASES[scenario], f"{scenario} has no case {case}"
    files = (ROOT / "tests" / "kubernetes").glob("test_*.py")
    defined = {name for file in files for name in re.findall(r"^def (\w+)", file.read_text(), re.M)}
    assert set(functions) <= defined
