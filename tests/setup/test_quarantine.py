"""The list of cases that may fail for a while, and what is wrong with one."""

from __future__ import annotations

import datetime
import subprocess
import sys

import pytest
import quarantine
from harness import scenarios

TODAY = datetime.date.today()


def days_ago(days):
    return (TODAY - datetime.timedelta(days)).isoformat()


@pytest.fixture
def written(tmp_path):
    """A function that writes such a list, and returns its path."""
    path = tmp_path / "quarantine"

    def write(*lines):
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def test_the_list_of_the_tree_names_cases_that_there_are():
    """No other suite looks at it; the end of an application and its counters are no cases."""
    known = {
        f"{version.name}-{scenario.name}-{case}"
        for version, scenario in scenarios.applications(*scenarios.TIERS)
        for case in scenario.cases
    }
    assert "4.3.0-rows-blocks-stopsEarly" in known
    assert {entry.case for entry in quarantine.entries()} <= known


def test_what_is_old(written):
    path = written(
        "# a comment",
        "",
        f"4.3.0-killed-killInMap {days_ago(20)} it hangs; issue 7",
        f"shortage::asks_again  {days_ago(14)}  waits by the clock",
    )
    assert [entry.case for entry in quarantine.entries(path)] == [
        "4.3.0-killed-killInMap",
        "shortage::asks_again",
    ]
    assert [str(entry) for entry in quarantine.older_than(14, path)] == [
        f"4.3.0-killed-killInMap, since {days_ago(20)}: it hangs; issue 7"
    ]
    assert quarantine.older_than(20, path) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a-case 2026-11-20"], "'a-case 2026-11-20' is not CASE DATE REASON"),
        (["a-case"], "'a-case' is not CASE DATE REASON"),
        (["a-case 20.11.2026 why"], "'20.11.2026' is no date"),
        (["a-case 2026-11-31 why"], "'2026-11-31' is no date"),
        ([f"a-case {days_ago(-9)} why"], f"'{days_ago(-9)}' is yet to come"),
        (["a-case 2026-11-20 why", "a-case 2026-11-20 why"], "quarantine:2: 'a-case' stands there"),
        ([f"case-{n} 2026-11-20 why" for n in range(6)], "6 cases, at most 5"),
    ],
)
def test_a_bad_line_is_named(written, lines, said):
    with pytest.raises(ValueError, match="quarantine") as error:
        quarantine.entries(written(*lines))
    assert said in str(error.value)


def test_the_program_fails_if_one_is_old(written):
    for days, code in ((3, 0), (15, 1)):
        path = written(f"a-case {days_ago(days)} why")
        program = f"""
import pathlib, sys
import quarantine
quarantine.older_than.__defaults__ = (pathlib.Path({str(path)!r}),)
sys.exit(quarantine.main())
"""
        ended = subprocess.run(
            [sys.executable, "-c", program],
            cwd=quarantine.LIST.parent / "setup",
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == code
        assert ("a-case" in ended.stderr) == bool(code)
