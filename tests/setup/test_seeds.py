"""What ends the seeds of the simulation, and what counts as passed."""

from __future__ import annotations

import math

import attempts
import pytest
from programs import loaded

PASSED = "500 seeds in 42 s\n1000 seeds passed and 0 failed in 84 s\n"


@pytest.mark.parametrize(
    ("ended", "text", "last"),
    [
        (attempts.Ended(0, "", 84), PASSED, "1000 passed, 0 failed"),
        (
            attempts.Ended(1, "", 84),
            "999 seeds passed and 1 failed in 84 s\n",
            "999 passed, 1 fail",
        ),
        (attempts.Ended(0, "", 84), "", "0 passed, 1 failed"),
        (attempts.Ended(0, "", 84), "10 seeds passed and 0 failed in 1 s\n", "10 passed, 1 failed"),
        (
            attempts.Ended(-9, "no progress for 300 s", 342),
            "500 seeds in 42 s\n",
            "0 passed, 1 fail",
        ),
    ],
)
def test_all_seeds_have_to_pass_however_long_they_take(
    ended, text, last, tmp_path, monkeypatch, capsys
):
    seeds = loaded("setup/seeds")
    monkeypatch.setattr(seeds, "LOG", tmp_path / "log")

    def run(_command, log, _halves, ceiling=attempts.guard.CEILING, **_):
        assert ceiling == math.inf
        log.write_text(text)
        return ended

    monkeypatch.setattr(attempts, "run", run)
    monkeypatch.setattr("sys.argv", ["seeds", "1000"])
    assert seeds.main() == (0 if last.endswith(" 0 failed") else 1)
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)
