"""The tests that docs/reliability.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import scenarios

ROOT = Path(__file__).resolve().parents[2]
CASES = {scenario.name: scenario.cases for scenario in scenarios.SCENARIOS}


def rows():
    """What happens, and what shows it."""
    lines = (ROOT / "docs" / "reliability.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    for line in table:
        happens, *_, shown_by = line.strip("|").split("|")
        yield happens.strip(), shown_by.strip()


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
