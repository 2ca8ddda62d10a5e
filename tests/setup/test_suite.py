"""What tests/softroce/suite runs in each tier, and how it takes the output of a guest apart."""

from __future__ import annotations

import re
import subprocess

import attempts
import processors
import pytest
from programs import loaded

# What `make test` runs in two guests.
TEST = ["device", "conformance", "memory", "endpoint", "fetch", "pull", "security"]


@pytest.fixture
def suite(tmp_path, monkeypatch):
    module = loaded("softroce/suite")
    monkeypatch.setattr(module, "LOGS", tmp_path)
    return module


def test_the_first_tier_boots_two_guests(suite):
    cases = [case for case in suite.CASES if case.tier == suite.TEST]
    assert [case.name for case in cases] == TEST
    boots = suite.boots(cases)
    assert len(boots) == 2
    for boot in boots:
        assert {tuple(case.options) for case in boot.cases} == {tuple(suite.SMALL)}
        assert {case.halves for case in boot.cases} == {processors.ONE}


def test_every_other_case_has_a_guest_of_its_own(suite):
    others = [case for case in suite.CASES if case.tier != suite.TEST]
    assert all(len(boot.cases) == 1 for boot in suite.boots(others))
    spark = {case.name: case.tier for case in others if case.tier != suite.ALL}
    assert spark == {"spark": suite.EVERY, "spark-full": suite.CANDIDATE}


class Named:
    """In place of what is built: the names of programs."""

    def test(self, package, test):
        return package, test

    def program(self, kind, name):
        return kind, name


def test_each_test_of_a_device_is_in_a_case(suite, monkeypatch):
    """A test that is ignored because it needs a device runs nowhere else."""
    monkeypatch.setattr(suite, "with_pytest", lambda command: command)
    firsts = [case.command(Named())[0] for case in suite.CASES]
    cases = {first for first in firsts if isinstance(first, tuple)}
    programs = set()
    for source in (suite.ROOT / "native").glob("*/**/*.rs"):
        if re.search(r'ignore = "needs .*RDMA|^over_every_fabric!', source.read_text(), re.M):
            package, folder, *rest = source.relative_to(suite.ROOT / "native").parts
            test = rest[0].removesuffix(".rs") if folder == "tests" else None
            programs.add((f"faro-{package}", test))
    # The macro, which other programs use.
    assert cases == programs - {("faro-endpoint", "support")}


@pytest.fixture
def boot(suite, monkeypatch):
    """A function that runs a guest of three cases, which are scripts, up to where it is cut."""

    def run(*scripts: str, cut: str = "", late: str = "", code: int | None = None):
        cases = [
            suite.Case(name, suite.libtest, [], lambda _, script=script: ["sh", "-c", script])
            for name, script in zip(("one", "two", "three"), scripts)
        ]

        def attempt(words, log, *_, **__):
            command = words[words.index("--") + 1 :]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            log.write_text(done.stdout.split(cut)[0] if cut else done.stdout)
            return attempts.Ended(done.returncode if code is None else code, late, 1)

        monkeypatch.setattr(attempts, "run", attempt)
        return suite.Boot(cases).run(None, {}, processors.ONE)

    return run


def passed(count: int, failed: int = 0) -> str:
    return f"echo 'test result: x. {count} passed; {failed} failed; 0 ignored'"


def test_each_case_of_a_guest_has_its_counts_and_its_log(suite, boot):
    found = boot(passed(3), passed(2, 1) + "; exit 101", passed(4))
    assert [one.counts for one in found.values()] == [[3, 0], [2, 1], [4, 0]]
    assert "3 passed" in (suite.LOGS / "one.log").read_text()
    assert "3 passed" not in (suite.LOGS / "two.log").read_text()


def test_a_case_that_broke_without_a_failed_test_has_failed(boot):
    found = boot(passed(3), "kill -9 $$", passed(0))
    assert [one.counts for one in found.values()] == [[3, 0], [0, 1], [0, 1]]


def test_a_late_guest_leaves_what_ended_and_names_the_rest(boot):
    found = boot(passed(3), "echo waits", passed(4), cut="waits", late="no progress for 300 s")
    assert found["one"].counts == [3, 0]
    assert found["two"].late == "no progress for 300 s"
    assert found["three"].late == "did not begin: no progress for 300 s"


def test_a_test_that_failed_before_the_guest_was_late_is_wrong(boot):
    script = "echo 'test x ... FAILED'; echo waits"
    found = boot(passed(3), script, passed(4), cut="waits", late="no progress for 300 s")
    assert (found["two"].counts, found["two"].late) == ([0, 1], "")


def test_a_guest_that_breaks_fails_what_had_not_ended(boot):
    found = boot(passed(3), "echo waits", passed(4), cut="waits", code=125)
    assert [one.counts for one in found.values()] == [[3, 0], [0, 1], [0, 1]]


def test_a_guest_that_breaks_after_its_cases_is_red(suite, boot):
    found = boot(passed(3), passed(2), passed(4), code=125)
    assert [one.counts for one in found.values()] == [[3, 0], [2, 0], [0, 1]]
    assert "the guest ended with 125" in (suite.LOGS / "three.log").read_text()
    found = boot(passed(3), passed(2), passed(4), late="no progress for 300 s", code=-9)
    assert [one.late for one in found.values()] == ["", "", "no progress for 300 s"]


@pytest.mark.parametrize(("words", "skipped"), [(["--tier", "test"], len(TEST)), (["spark"], 1)])
def test_what_make_test_runs_is_skipped_without_a_kernel(
    suite, monkeypatch, capsys, words, skipped
):
    monkeypatch.setattr(suite, "kernel_is_ready", lambda: False)
    monkeypatch.setattr("sys.argv", ["suite", *words])
    assert suite.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert "make test-rdma" in lines[0]
    assert lines[-1] == f"0 passed, 0 failed, {skipped} skipped"


def ran(suite, monkeypatch, outcomes):
    """Runs cases whose boots come to these outcomes, one for each attempt."""
    left = {name: list(found) for name, found in outcomes.items()}

    def run(self, _built, _environment, _halves):
        return {case.name: left[case.name].pop(0) for case in self.cases}

    monkeypatch.setattr(suite.Boot, "run", run)
    report = suite.Report()
    cases = [suite.Case(name, suite.libtest, [], lambda _: []) for name in outcomes]
    report.run(cases, {})
    assert not any(left.values()), "attempts that did not run"
    return report.totals


def test_a_late_case_that_passes_then_is_flaky(suite, monkeypatch, capsys):
    late = suite.Outcome(None, 300, late="no progress for 300 s")
    outcomes = {"a": [late, suite.Outcome([5, 0])], "b": [suite.Outcome([1, 0])]}
    assert ran(suite, monkeypatch, outcomes) == [6, 0]
    assert "\nflaky: a: no progress for 300 s\n" in capsys.readouterr().out
    assert ran(suite, monkeypatch, {"a": [late, late]}) == [0, 1]
    assert ran(suite, monkeypatch, {"a": [suite.Outcome([5, 1])]}) == [5, 1]
    assert "flaky" not in capsys.readouterr().out
