"""What tests/setup/cargo-tests runs in each tier, and what it says of programs that were late."""

from __future__ import annotations

import re
from pathlib import Path

import attempts
import native_build
import pytest
from programs import loaded

NATIVE = native_build.ROOT / "native"


@pytest.fixture
def module(tmp_path, monkeypatch):
    module = loaded("setup/cargo-tests")
    monkeypatch.setattr(module, "LOGS", tmp_path)
    return module


def program(name: str, kind: str = "test", is_test: bool = True) -> native_build.Program:
    package, target = name.split()
    return native_build.Program(native_build.ROOT / package, target, kind, is_test, f"/{target}")


def test_every_sample_and_every_ignored_bench_is_in_the_rest(module):
    """The tests that call `cases`, or that say `make test-all`, and no other, are the rest's."""
    found = {}
    for source in sorted(NATIVE.glob("*/tests/**/*.rs")):
        text = source.read_text()
        package, target = source.relative_to(NATIVE).parts[0], source.relative_to(NATIVE).parts[2]
        name = f"native/{package} {target.removesuffix('.rs')}"
        if 'ignore = "make test-all"' in text:
            # `--ignored` runs all that are.
            assert set(re.findall(r'ignore = "(.*?)"', text)) == {"make test-all"}
            found[name] = ["--ignored"]
        elif re.search(r"\bcases\(", text):
            tests = re.split(r"^fn |^pub fn ", text, flags=re.M)[1:]
            found[name] = [
                re.match(r"\w+", one)[0] for one in tests if re.search(r"\bcases\(", one)
            ]
    simulation = found.pop("native/simulation simulation")
    # A helper of the tests of one module.
    assert simulation == ["pass"]
    rest = dict(module.REST)
    assert rest.pop("native/simulation simulation") == ["seeds::"]
    assert rest == found


def test_each_tier_runs_its_programs(module):
    built = [
        program("native/fabric conformance"),
        program("native/fabric memory"),
        program("native/cli faro", "bin", is_test=False),
        program("native/endpoint alltoall", "bench"),
    ]
    first = module.runs(built, "test")
    assert [one.name for one in first] == [
        "native/fabric conformance",
        "native/fabric memory",
        "doc tests",
    ]
    assert first[0].command == ["/conformance"]
    rest = module.runs(built, "all")
    assert [(one.command, one.environment["FARO_TESTS"]) for one in rest] == [
        (["/conformance", "--ignored"], "all")
    ]


def ran(module, attempted: dict[str, list[tuple[attempts.Ended, str]]]) -> list[str]:
    """Runs programs whose attempts end in these ways; what was reported as failed."""

    class Run(module.Run):
        def attempt(self, _halves):
            ended, text = attempted[self.name].pop(0)
            self.log().write_text(text)
            return ended

    report = module.Report()
    report.run([Run(name, [], Path(), {}) for name in attempted])
    assert not any(attempted.values()), "attempts that did not run"
    return report.failed


OK = attempts.Ended(0, "", 1)
LATE = attempts.Ended(-9, "no progress for 300 s", 301)


def test_a_late_program_that_passes_then_is_flaky(module, capsys):
    assert not ran(module, {"a": [(LATE, "test x ... ok\n"), (OK, "again\n")], "b": [(OK, "b\n")]})
    said = capsys.readouterr().out
    assert "\nflaky: a: no progress for 300 s\n" in said
    assert said.index("Running b") < said.index("Running a")


def test_a_program_that_is_late_twice_has_failed(module, capsys):
    assert ran(module, {"a": [(LATE, ""), (LATE, "")]}) == ["a: late: no progress for 300 s"]
    assert "flaky" not in capsys.readouterr().out


def test_what_is_wrong_is_not_tried_again(module, capsys):
    assert ran(module, {"a": [(attempts.Ended(101, "", 1), "test x ... FAILED\n")]})
    assert ran(module, {"a": [(LATE, "test x ... FAILED\ntest y ...")]})
    assert "flaky" not in capsys.readouterr().out


def test_words_that_choose_no_test_are_an_error(module, monkeypatch, capsys):
    class Run(module.Run):
        def attempt(self, _halves):
            self.log().write_text(f"test result: ok. {self.command[0]} passed; 0 failed; 0 ignored")
            return OK

    report = module.Report()
    runs = [("a", ["3"], False), ("b", ["0"], False), ("c", ["0", "seed::"], True)]
    report.run([Run(name, words, Path(), {}, is_part) for name, words, is_part in runs])
    assert report.failed == ["c: no test is named seed::"]
    monkeypatch.setattr(native_build, "programs", lambda *_, **__: [program("native/fabric a")])
    for passed, code in (("0", 1), ("3", 0)):
        one = Run("native/fabric a", [passed], Path(), {})
        monkeypatch.setattr(module, "runs", lambda *_, one=one: [one])
        monkeypatch.setattr("sys.argv", ["cargo-tests", "--named", "a_slow_helo"])
        assert module.main() == code
    assert "no test ran that has a_slow_helo in its name" in capsys.readouterr().out


def test_only_what_is_chosen_is_built(module):
    assert module.targets(["native/fabric hostile", "pull"]) == (
        "--test",
        "hostile",
        "--test",
        "pull",
    )
    assert module.targets([]) == native_build.TARGETS
    # Unit tests.
    assert module.targets(["hostile", "faro_fabric"]) == native_build.TARGETS
    assert module.is_chosen("native/fabric hostile", ["hostile"])
    assert not module.is_chosen("native/fabric hostile_shm", ["hostile"])
