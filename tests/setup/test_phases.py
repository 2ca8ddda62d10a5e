"""The phases of a tier: what they add up to, how they share the processors, what ends them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
# Waits for a file of the other phase, which ends only if both run at a time.
MEETS = """#!/bin/sh
touch "$0.runs"
while [ ! -e "{other}.runs" ]; do sleep 0.05; done
echo '1 passed, 0 failed'
"""


def loaded(name="run"):
    """The program `tests/run`, or another one beside it, as a module."""
    loader = importlib.machinery.SourceFileLoader(f"program_{name}", str(TESTS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`tests/run`, which writes its logs and times elsewhere."""
    module = loaded()
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(module, "TIMES", tmp_path / "times")
    # A suite of these tests may have a queue of its own around it.
    monkeypatch.setenv(module.processors.SOCKET, "")
    return module


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def ran(module, monkeypatch, phases):
    monkeypatch.setattr(module.phases, "TIERS", {"test": phases})
    monkeypatch.setattr(sys, "argv", ["run"])
    return module.main()


def phase(module, name, command, needs=2, **more):
    return module.phases.Phase(name, command, module.phases.closing_counts, 60, needs, **more)


def test_two_phases_of_one_processor_run_at_a_time(run, monkeypatch, tmp_path, capsys):
    one, other = tmp_path / "one", tmp_path / "other"
    commands = [script(one, MEETS.format(other=other)), script(other, MEETS.format(other=one))]
    found = [phase(run, f"p{n}", command) for n, command in enumerate(commands)]
    assert ran(run, monkeypatch, found) == 0
    assert capsys.readouterr().out.endswith("\n2 passed, 0 failed\n")


def test_what_sets_up_comes_first(run, monkeypatch, tmp_path):
    says = script(
        tmp_path / "says", f"#!/bin/sh\necho $1 >>{tmp_path}/said\necho '1 passed, 0 failed'\n"
    )
    tests = [phase(run, name, f"{says} {name}") for name in ("a", "b")]
    setups = [run.phases.setup(name, f"{says} {name}") for name in ("fetch", "build")]
    assert ran(run, monkeypatch, [*tests, *setups]) == 0
    order = (tmp_path / "said").read_text().split()
    assert sorted(order[:2]) == ["build", "fetch"]
    assert sorted(order[2:]) == ["a", "b"]


def test_nothing_is_tested_after_a_set_up_that_failed(run, monkeypatch, tmp_path, capsys):
    bad = script(tmp_path / "bad", "#!/bin/sh\necho no compiler\nexit 3\n")
    found = [run.phases.setup("build", bad), phase(run, "a", f"touch {tmp_path}/ran")]
    assert ran(run, monkeypatch, found) == 1
    said = capsys.readouterr().out
    assert "   no compiler\n   exit code 3" in said
    assert "\nfailed phases: build\n" in said
    assert said.endswith("\n0 passed, 1 failed\n")
    assert not (tmp_path / "ran").exists()


def test_a_failed_phase_is_named_and_the_others_run(run, monkeypatch, tmp_path, capsys):
    bad = script(
        tmp_path / "bad", "#!/bin/sh\necho 'FAILED a.py::b - c'\necho '4 passed, 1 failed'\n"
    )
    good = script(tmp_path / "good", "#!/bin/sh\necho '2 passed, 0 failed, 3 skipped'\n")
    silent = script(tmp_path / "silent", "#!/bin/sh\n")
    missing = str(tmp_path / "missing")
    pairs = [("a", bad), ("b", good), ("c", silent), ("d", missing)]
    assert ran(run, monkeypatch, [phase(run, *pair) for pair in pairs]) == 1
    said = capsys.readouterr().out
    assert "\na: FAILED a.py::b - c\n" in said
    assert "\nfailed phases: a, c, d\n" in said
    assert said.endswith("\n6 passed, 3 failed, 3 skipped\n")


def test_a_line_of_a_full_run_names_what_it_tested(run, monkeypatch, tmp_path):
    """The revision that it began with, and the phases of which all was skipped."""
    states, lines = ["began", "ended"], []
    monkeypatch.setattr(run.last_runs, "state", lambda: states.pop(0))
    monkeypatch.setattr(run.last_runs, "add", lambda *words: lines.append(words))
    good = script(tmp_path / "good", "#!/bin/sh\necho '2 passed, 0 failed, 3 skipped'\n")
    skips = script(tmp_path / "skips", "#!/bin/sh\necho '0 passed, 0 failed, 7 skipped'\n")
    found = [phase(run, "a", good), phase(run, "guests", skips)]
    monkeypatch.setattr(run.phases, "TIERS", {"all": found})
    monkeypatch.setattr(sys, "argv", ["run", "--tier", "all"])
    assert run.main() == 0
    command, state, _, closing, without = lines.pop()
    assert (command, state, without) == ("test-all", "began", ["guests"])
    assert closing == "2 passed, 0 failed, 10 skipped"
    monkeypatch.setattr(run.phases, "TIERS", {"all": [*found, phase(run, "b", "false")]})
    states[:] = ["began"]
    assert run.main() == 1
    assert not lines


def test_who_has_processors_asks_for_no_more(run, monkeypatch, tmp_path):
    asked = 'echo "$1 ${FARO_PROCESSORS:+asks}"'
    says = script(
        tmp_path / "says",
        f"#!/bin/sh\n{asked} >>{tmp_path}/said\necho '1 passed, 0 failed'\n",
    )
    found = [phase(run, "whole", f"{says} whole"), phase(run, "parts", f"{says} parts", needs=0)]
    assert ran(run, monkeypatch, found) == 0
    assert sorted((tmp_path / "said").read_text().splitlines()) == ["parts asks", "whole "]


def test_what_was_late_once_is_counted_as_flaky(run, monkeypatch, tmp_path, capsys):
    late = script(
        tmp_path / "late",
        "#!/bin/sh\necho 'flaky: 4.3.0-killed: no progress for 300 s'\necho '2 passed, 0 failed'\n",
    )
    assert ran(run, monkeypatch, [phase(run, "spark", late)]) == 0
    said = capsys.readouterr().out
    assert "\nflaky: spark: 4.3.0-killed: no progress for 300 s\n" in said
    assert said.endswith("\n2 passed, 0 failed, 1 flaky\n")


def test_the_last_five_times_are_shown(run, monkeypatch, tmp_path, capsys):
    good = script(tmp_path / "good", "#!/bin/sh\necho '1 passed, 0 failed'\n")
    (tmp_path / "times").mkdir()
    (tmp_path / "times" / "test.json").write_text('{"a": [11, 12, 13, 14, 15], "gone": [7]}')
    assert ran(run, monkeypatch, [phase(run, "a", good)]) == 0
    assert " 60  11 12 13 14 15\n" in capsys.readouterr().out
    assert (
        tmp_path / "times" / "test.json"
    ).read_text() == '{"a": [12, 13, 14, 15, 0], "gone": [7]}'


# When the interrupt comes: what makes `tests/run` be there until it has come.
STARTED = "the second one is being started"
MOMENTS = {
    "both phases run": "",
    STARTED: """
start = subprocess.Popen
def started(command, **more):
    process = start(command, **more)
    if command[-1].endswith("/b"):
        module.STOPPED.wait()
    return process
subprocess.Popen = started
""",
}


@pytest.mark.parametrize(
    ("moment", "number"),
    [*((m, signal.SIGINT) for m in MOMENTS), (next(iter(MOMENTS)), signal.SIGTERM)],
)
def test_an_interrupt_ends_all_phases(moment, number, tmp_path):
    """They and what they started are gone, and what waits for processors never begins."""
    waits = script(tmp_path / "waits", '#!/bin/sh\necho $$ >"$1.pid"\nexec sleep 600\n')
    late = tmp_path / "late"
    program = f"""
import signal, subprocess, sys, time
from pathlib import Path
# A shell starts what it has in the background with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_phases
module = test_phases.loaded()
module.LOGS = Path({str(tmp_path)!r}) / "logs"
module.TIMES = Path({str(tmp_path)!r}) / "times"
{MOMENTS[moment]}
def phase(name, command, needs):
    return module.phases.Phase(name, command, module.phases.closing_counts, 60, needs)
module.phases.TIERS = {{"test": [
    phase("a", {f"{waits} {tmp_path}/a"!r}, 2),
    phase("b", {f"{waits} {tmp_path}/b"!r}, 2),
    phase("c", {f"touch {late}"!r}, 4),
]}}
sys.argv = ["run"]
sys.exit(module.main())
"""
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    # One start at a time: the other one may be waiting for this one's.
    pids = [tmp_path / f"{name}.pid" for name in ("b" if moment == STARTED else "ab")]
    while not all(pid.exists() and pid.read_text().strip() for pid in pids):
        assert run.poll() is None, "it ended by itself"
        time.sleep(0.02)
    run.send_signal(number)
    said = run.communicate()[0]
    assert run.returncode == 130
    assert said.endswith("\ninterrupted\n")
    assert not late.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize("tier", loaded().phases.TIERS)
def test_the_programs_of_the_table_exist(tier):
    for one in loaded().phases.TIERS[tier]:
        program = next(word for word in one.command.split() if word != "env" and "=" not in word)
        assert "/" not in program or os.access(TESTS.parent / program, os.X_OK), one.name


# Knows one phase, which is red the second time.
RED_ONCE = """#!/bin/sh
[ "$1" = --names ] && echo some && exit
echo . >> "$0.runs"
[ "$(wc -l < "$0.runs")" = 2 ] && echo "0 passed, 1 failed" && exit 1
echo "1 passed, 0 failed"
"""


def test_a_run_that_is_red_once_is_named(tmp_path, monkeypatch, capsys):
    repeat = loaded("repeat")
    (tmp_path / "tests").mkdir()
    script(tmp_path / "tests" / "run", RED_ONCE)
    monkeypatch.setattr(repeat, "ROOT", tmp_path)
    monkeypatch.setattr(repeat, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(sys, "argv", ["repeat", "--times", "3", "--busy", "1"])
    assert repeat.main() == 1
    said = capsys.readouterr().out
    assert said.endswith("red: some-2\n")
    assert said.count("green") == 2
    assert "0 passed, 1 failed" in (tmp_path / "logs" / "some-2.log").read_text()
    monkeypatch.setattr(sys, "argv", ["repeat", "other"])
    with pytest.raises(SystemExit) as ended:
        repeat.main()
    assert ended.value.code == 2
    assert "there are some" in capsys.readouterr().err
