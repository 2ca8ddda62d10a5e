"""What is tried once more of the Spark applications, and what is not."""

from __future__ import annotations

import dataclasses
import platform
import signal
import threading
import time
import zipfile
from pathlib import Path

import guard
import processors
import pytest
import spark_home
from harness import applications, launch, scenarios, verdict
from harness.applications import Application, Jars, Running

NEWEST = spark_home.all_versions()[-1]
LATE = "no progress for 300 s"
JARS = Jars(Path("jobs.jar"), None)


class Machine:
    """In place of launch.run: what applications are to do when they run, and when they ran."""

    def __init__(self):
        self.will: dict[str, list] = {}
        self.ran: list[str] = []
        self.beside: list[int] = []
        self._now = 0
        self._lock = threading.Lock()

    def run(self, _version, _home, scenario, _jobs, _faro, logs, _archive):
        with self._lock:
            self._now += 1
            self.ran.append(scenario.name)
            self.beside.append(self._now)
        logs.mkdir(parents=True)
        (logs / "driver.log").write_text(f"run {self.ran.count(scenario.name)}")
        try:
            result = self.will[scenario.name].pop(0)
            if callable(result):
                result = result()
            if isinstance(result, Exception):
                raise result
            return result
        finally:
            with self._lock:
                self._now -= 1


@pytest.fixture
def machine(monkeypatch):
    made = Machine()
    monkeypatch.delenv(processors.SOCKET, raising=False)
    monkeypatch.setattr(launch, "run", made.run)
    monkeypatch.setattr(launch, "_stopped", threading.Event())
    monkeypatch.setattr(spark_home, "ensure", lambda _: Path("home"))
    monkeypatch.setattr(applications, "WORTH_AN_ARCHIVE", 1000)
    return made


def outcome(*lines, late="", executors=None, exit_code=0):
    return launch.Outcome(
        exit_code,
        late=late,
        driver_log="\n".join(("command", *lines)),
        executor_logs=executors or {},
    )


def good(case="one"):
    return outcome(f"CASE {case} OK 1", "JOBS DONE")


def application(tmp_path, name, **more):
    scenario = scenarios.Scenario(name, ["one"], **more)
    return Application(NEWEST, scenario, tmp_path / name)


def test_what_is_late_runs_once_more_alone(machine, tmp_path):
    both = threading.Barrier(2, timeout=60)

    def together(result):
        both.wait()
        return result

    machine.will = {
        "late": [lambda: together(outcome("MARK case one", late=LATE)), good()],
        "good": [lambda: together(good())],
    }
    found = [application(tmp_path, name) for name in machine.will]
    running = Running(found, JARS, None)
    ended = running.result(f"{NEWEST.name}-late")
    assert not ended.problem
    assert ended.late_before == LATE
    assert [case.passed for case in ended.reported["one"]] == [True]
    assert machine.ran[-1] == "late"
    assert machine.beside[-1] == 1
    assert (tmp_path / "late" / "driver.log").read_text() == "run 2"
    assert (tmp_path / "late-late" / "driver.log").read_text() == "run 1"
    assert not running.result(f"{NEWEST.name}-good").late_before


def test_what_is_late_twice_is_red(machine, tmp_path):
    machine.will = {"a": [outcome(late=LATE), launch.Late("faro serve did not start")]}
    ended = Running([application(tmp_path, "a")], JARS, None).result(f"{NEWEST.name}-a")
    assert ended.problem == "faro serve did not start"
    assert machine.ran == ["a", "a"]


SEGV = "26/11/28 INFO Worker: Executor app-1/0 finished with state EXITED message x exitStatus 139"
WRONG = {
    "a case": outcome("CASE one FAILED AssertionError: sum", "MARK task", late=LATE),
    "a leak": outcome("MARK case one", "OWED leases", late=LATE),
    "a panic": outcome(late=LATE, executors={"0": "thread 'x' panicked at src/a.rs:1"}),
    "a CRC": outcome("COUNTERS 0 {crcErrors=1.0}", late=LATE),
    "a fall-back": outcome("COUNTERS 0 {fallbacks.timeout=1.0}", late=LATE),
    "a crash, late": outcome(SEGV, late=LATE),
    "a crash": outcome(SEGV, "CASE one OK 1", "JOBS DONE"),
    "its exit": outcome("CASE one OK 1"),
    "its exit code": outcome("CASE one OK 1", "JOBS DONE", exit_code=-signal.SIGABRT),
    "no report": RuntimeError("faro serve ended with exit code 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_never_tried_again(machine, tmp_path, what):
    machine.will = {"a": [WRONG[what], good()]}
    ended = Running([application(tmp_path, "a")], JARS, None).result(f"{NEWEST.name}-a")
    assert ended.problem
    assert machine.ran == ["a"]


def test_what_a_scenario_forbids_is_wrong_before_late():
    found = outcome("COUNTERS 0 {rowReaders=2.0 remoteBlocks.tcp=1.0}", late=LATE)
    found.executor_logs = {"0": "one\nWARN Faro: x\n"}
    used = scenarios.Scenario("a", ["one"])
    assert not verdict.wrong_before_late(used, found)
    for more, said in (
        ({"must_not_count": ("rowReaders",)}, "rowReaders is 2"),
        ({"must_not_log": "WARN Faro"}, "an executor logged: WARN Faro: x"),
        ({"faro": scenarios.DECLINED}, "remoteBlocks is 1"),
    ):
        assert verdict.wrong_before_late(dataclasses.replace(used, **more), found) == said


def test_an_executor_that_was_killed_has_not_crashed():
    for end in ("EXITED message Command exited with code 137", "KILLED message x"):
        line = SEGV.replace("EXITED message x", end).replace("139", "137")
        assert not verdict.end_problem(outcome(line, "CASE one OK 1", "JOBS DONE"))


def test_late_stays_red_where_it_was_a_defect_once(machine, tmp_path):
    machine.will = {"a": [outcome(late=LATE), good()]}
    one = application(tmp_path, "a", late_is_red=True)
    assert Running([one], JARS, None).result(one.name).problem == LATE
    assert machine.ran == ["a"]


def test_those_where_late_was_a_defect():
    red = {scenario.name for scenario in scenarios.SCENARIOS if scenario.late_is_red}
    begin = ("killed", "node-service", "faults-", "decommission")
    assert {s.name for s in scenarios.SCENARIOS if s.name.startswith(begin)} <= red


def test_no_more_than_so_many_at_a_time(machine, tmp_path):
    names = [f"s{n}" for n in range(6)]
    machine.will = {name: [good()] for name in names}
    found = [application(tmp_path, name, waits=True) for name in names]
    running = Running(found, JARS, 1)
    assert not any(running.result(one.name).problem for one in found)
    assert machine.ran == names
    assert machine.beside == [1] * 6


def test_who_waits_mostly_passes_who_works(machine, tmp_path):
    ended = threading.Event()

    def once_others_have():
        assert ended.wait(60)
        return good()

    def last():
        ended.set()
        return good()

    # Two that work have both processors' worth but for what one that waits takes.
    machine.will = {"works": [once_others_have], "works-too": [good()], "waits": [last]}
    found = [application(tmp_path, n, waits=n == "waits") for n in machine.will]
    running = Running(found, JARS, None)
    assert not any(running.result(one.name).problem for one in found)


def test_what_cannot_begin_is_reported(machine, tmp_path, monkeypatch):
    def broken(_):
        raise RuntimeError("the queue for the processors has ended")

    monkeypatch.setattr(processors, "take", broken)
    one = application(tmp_path, "a")
    with pytest.raises(RuntimeError, match="queue"):
        Running([one], JARS, None).result(one.name)
    assert machine.ran == []


def test_after_a_stop_nothing_begins(machine, tmp_path):
    begun, go = threading.Event(), threading.Event()

    def first():
        begun.set()
        assert go.wait(60)
        return outcome(late=LATE)

    machine.will = {"a": [first, good()], "b": [good()]}
    found = [application(tmp_path, name) for name in machine.will]
    running = Running(found, JARS, 1)
    assert begun.wait(60)
    assert running.stop() == []
    go.set()
    assert running.result(found[0].name).late == LATE
    assert machine.ran == ["a"]


def test_the_guard_says_what_is_waited_for(tmp_path, monkeypatch):
    says = [
        "MARK case one",
        "WAITS the end",
        "OWED leases",
        "MARK met leases",
        "WARN Faro: no mark",
    ]
    marks = []

    def wait(_process, log, is_mark, silence, _ceiling):
        while "no mark" not in log.read_text().partition("\n")[2]:
            time.sleep(0.02)
        marks.extend(line for line in log.read_text().splitlines() if is_mark(line))
        return f"no progress for {silence} s"

    monkeypatch.setattr(guard, "wait", wait)
    lines = "; ".join(f"echo '{line}'" for line in says)
    ended = launch.drive(["sh", "-c", f"{lines}; sleep 600"], {}, tmp_path, marks=True)
    assert marks == ["MARK case one", "MARK met leases"]
    assert ended.late == f"{LATE}, waiting for: the end"
    assert not verdict.wrong_before_late(scenarios.Scenario("a", ["one"]), ended)


def test_an_application_that_is_interrupted_is_not_waited_for(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(guard, "wait", interrupted)
    monkeypatch.setattr(launch, "EXECUTORS_END", 3_600)
    with pytest.raises(KeyboardInterrupt):
        launch.drive(["sleep", "600"], {}, tmp_path)
    assert not launch._running


def test_what_runs_at_the_end_is_ended_and_cleans_up(tmp_path, machine):
    begun, cleaned = threading.Event(), []

    def runs():
        leader = launch.start_group(["sleep", "600"])
        begun.set()
        leader.wait()
        launch._running.discard(leader)
        with pytest.raises(RuntimeError, match="interrupted"):
            launch.start_group(["sleep", "600"])
        cleaned.append(leader.returncode)
        return outcome()

    machine.will["a"] = [runs]
    running = Running([application(tmp_path, "a")], JARS, None)
    begun.wait()
    assert running.stop() == []
    assert cleaned == [-signal.SIGKILL]


def test_an_application_that_ends_by_itself_is_not_late(tmp_path):
    ended = launch.drive(["sh", "-c", "echo WAITS the end; exit 3"], {}, tmp_path, marks=True)
    assert (ended.exit_code, ended.late) == (3, "")


def test_the_ceiling_counts_whatever_it_says(tmp_path):
    lines = "while :; do echo MARK task; sleep 0.1; done"
    ended = launch.drive(["sh", "-c", lines], {}, tmp_path, limit=1, marks=True)
    assert ended.late == "still ran after 1 s"


def test_what_waits_takes_half_a_processor(tmp_path):
    assert application(tmp_path, "a").halves == processors.ONE
    assert application(tmp_path, "a", waits=True).halves == processors.HALF


@pytest.mark.parametrize("has", [True, False])
def test_faults_need_a_library_that_injects_them(tmp_path, has):
    jar = tmp_path / "faro.jar"
    with zipfile.ZipFile(jar, "w") as written:
        name = f"META-INF/native/linux-{platform.machine()}/libfaro_jni.so"
        written.writestr(name, b"\0ELF FARO_FAULTS\0" if has else b"\0ELF\0")
    assert launch.injects_faults(jar) == has
