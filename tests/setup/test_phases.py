"""The phases of `make test`: what they add up to, how they follow each other, what ends them."""

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
# Waits for a file of the other lane's phase, which ends only if both run at a time.
MEETS = """#!/bin/sh
touch "$0.runs"
for _ in $(seq 600); do
  [ -e "{other}.runs" ] && echo '1 passed, 0 failed' && exit 0
  sleep 0.05
done
exit 1
"""


def loaded(name="run"):
    """The program `tests/run`, or another one beside it, as a module."""
    loader = importlib.machinery.SourceFileLoader(f"program_{name}", str(TESTS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def phases(tmp_path, monkeypatch):
    """`tests/run`, which writes its logs elsewhere."""
    module = loaded()
    monkeypatch.setattr(module, "LOGS", tmp_path / "logs")
    return module


def script(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def ran(module, monkeypatch, phases):
    monkeypatch.setattr(module, "PHASES", phases)
    monkeypatch.setattr(sys, "argv", ["run"])
    return module.main()


def phase(module, name, command, lane=0):
    return module.Phase(name, command, module.closing_counts, 1, lane=lane)


def test_two_lanes_run_at_a_time(phases, monkeypatch, tmp_path, capsys):
    one, other = tmp_path / "one", tmp_path / "other"
    commands = [script(one, MEETS.format(other=other)), script(other, MEETS.format(other=one))]
    lanes = [phase(phases, f"p{n}", command, n + 1) for n, command in enumerate(commands)]
    assert ran(phases, monkeypatch, lanes) == 0
    assert capsys.readouterr().out.endswith("\n2 passed, 0 failed\n")


def test_lanes_begin_and_end_between_their_neighbours(phases, monkeypatch, tmp_path):
    says = script(
        tmp_path / "says",
        f"""#!/bin/sh
echo "$1" >>{tmp_path}/said
echo '1 passed, 0 failed'
""",
    )
    found = [
        phase(phases, name, f"{says} {name}", lane)
        for name, lane in [("a", 0), ("b", 1), ("c", 2), ("d", 1), ("e", 0), ("f", 2), ("g", 1)]
    ]
    assert ran(phases, monkeypatch, found) == 0
    order = "".join((tmp_path / "said").read_text().split())
    assert order[0] == "a"
    assert sorted(order[1:4]) == ["b", "c", "d"]
    assert order.index("b") < order.index("d")
    assert order[4] == "e"
    assert sorted(order[5:]) == ["f", "g"]


def test_a_failed_phase_is_named_and_the_next_ones_run(phases, monkeypatch, tmp_path, capsys):
    bad = script(
        tmp_path / "bad", "#!/bin/sh\necho 'FAILED a.py::b - c'\necho '4 passed, 1 failed'\n"
    )
    good = script(tmp_path / "good", "#!/bin/sh\necho '2 passed, 0 failed, 3 skipped'\n")
    silent = script(tmp_path / "silent", "#!/bin/sh\n")
    found = [phase(phases, *pair) for pair in [("a", bad), ("b", good), ("c", silent)]]
    assert ran(phases, monkeypatch, found) == 1
    said = capsys.readouterr().out
    assert "a: FAILED a.py::b - c\nfailed phases: a, c\n6 passed, 2 failed, 3 skipped\n" in said


# When the interrupt comes: what makes `tests/run` be there until it has come.
MOMENTS = {
    "both phases run": "",
    "the second one is being started": """
start = subprocess.Popen
def started(command, **more):
    process = start(command, **more)
    if command[-1].endswith("/b"):
        module.STOPPED.wait()
    return process
subprocess.Popen = started
""",
    "the second lane was just begun": """
submit = module.ThreadPoolExecutor.submit
def submitted(pool, work, phases):
    future = submit(pool, work, phases)
    while phases[0].name == "b":
        time.sleep(0.02)
    return future
module.ThreadPoolExecutor.submit = submitted
""",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_ends_all_lanes(moment, tmp_path):
    """Both phases and what they started are gone, and no further phase begins."""
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
{MOMENTS[moment]}
def phase(name, command, lane):
    return module.Phase(name, command, module.closing_counts, 5, lane=lane)
module.PHASES = [
    phase("a", {f"{waits} {tmp_path}/a"!r}, 1),
    phase("b", {f"{waits} {tmp_path}/b"!r}, 2),
    phase("c", {f"touch {late}"!r}, 2),
]
sys.argv = ["run"]
sys.exit(module.main())
"""
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    pids = [tmp_path / "a.pid", tmp_path / "b.pid"]
    while not all(pid.exists() and pid.read_text().strip() for pid in pids):
        assert time.monotonic() < deadline, "the phases do not start"
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    try:
        said = run.communicate(timeout=60)[0]
    finally:
        run.kill()
    assert run.returncode == 130
    # A lane that was just begun may say that its phase has failed after it.
    assert "\ninterrupted\n" in said
    assert not late.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


# Knows one phase, which is red the second time; says how long it may take.
RED_ONCE = """#!/bin/sh
[ "$1" = --names ] && echo some && exit
echo . >> "$0.runs"
[ "$(wc -l < "$0.runs")" = 2 ] && echo "patience $2: 0 passed, 1 failed" && exit 1
echo "1 passed, 0 failed"
"""


def test_a_run_that_is_red_once_is_named(tmp_path, monkeypatch, capsys):
    repeat = loaded("repeat")
    (tmp_path / "tests").mkdir()
    script(tmp_path / "tests" / "run", RED_ONCE)
    monkeypatch.setattr(repeat, "ROOT", tmp_path)
    monkeypatch.setattr(repeat, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(repeat.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(sys, "argv", ["repeat", "--times", "3", "--busy", "1"])
    assert repeat.main() == 1
    said = capsys.readouterr().out
    assert said.endswith("red: some-2\n")
    assert said.count("green") == 2
    assert "patience 1.5: 0 passed, 1 failed" in (tmp_path / "logs" / "some-2.log").read_text()
    monkeypatch.setattr(sys, "argv", ["repeat", "other"])
    with pytest.raises(SystemExit) as ended:
        repeat.main()
    assert ended.value.code == 2
    assert "there are some" in capsys.readouterr().err
