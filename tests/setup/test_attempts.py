"""What is late, what is wrong, what is left of a program that the guard ended, and which library
is never released.

Stays because a fault here would make red tests green everywhere.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import attempts
import processors
import pytest
from harness import scenarios, verdict
from harness.launch import Outcome

SLEEPER = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a signal takes a moment."""
    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(file):
        return bool(select.select([file], [], [], 60)[0])


@pytest.mark.parametrize(("wait", "late"), [("", ""), ("; input()", "no progress for 2 s")])
def test_a_program_ends_with_all_that_it_started(tmp_path, wait, late):
    log, (stdin, keep) = tmp_path / "log", os.pipe()
    program = f"import os; os.dup2({stdin}, 0); {SLEEPER}{wait}"
    command = [sys.executable, "-c", program]
    ended = attempts.run(command, log, processors.ONE, silence=2, pass_fds=[stdin])
    os.close(stdin), os.close(keep)
    assert ended.late == late
    assert bool(ended.code) == bool(late)
    assert is_gone(int(log.read_text().split()[0]))


@pytest.mark.parametrize(
    "line",
    [
        "test shm::bring_the_bytes ... FAILED",
        "test_doctor.py::test_too_little_locked_memory FAILED",
        "FAILED test_doctor.py::test_too_little_locked_memory - assert",
        "test memory::is_given_back ... WARN the device is lost\nFAILED",
    ],
)
def test_a_failed_test_is_wrong(line):
    assert attempts.is_wrong(f"one\n{line}\nother\n")
    assert not attempts.is_wrong("test a ... ok\ntest b ... ignored, FAILED before\n")


LATE = "no progress for 300 s"
SEGV = "26/11/28 INFO Worker: Executor app-1/0 finished with state EXITED message x exitStatus 139"
USED = scenarios.Scenario("a", ["one"])


def outcome(*lines, late="", executor="", exit_code=0):
    log = "\n".join(("command", *lines))
    return Outcome(exit_code, late, driver_log=log, executor_logs={"0": executor})


@pytest.mark.parametrize(
    "ended",
    [
        outcome("CASE one FAILED AssertionError: sum", "MARK task", late=LATE),
        outcome("MARK case one", "OWED leases", late=LATE),
        outcome(late=LATE, executor="thread 'x' panicked at src/a.rs:1"),
        outcome("COUNTERS 0 {crcErrors=1.0}", late=LATE),
        outcome("COUNTERS 0 {fallbacks.timeout=1.0}", late=LATE),
        outcome(SEGV, late=LATE),
        outcome(SEGV, "CASE one OK 1", "JOBS DONE"),
        outcome("CASE one OK 1"),
        outcome("CASE one OK 1", "JOBS DONE", exit_code=-6),
    ],
)
def test_what_is_wrong_with_an_application(ended):
    """Also where it was late."""
    found = verdict.wrong_before_late(USED, ended) if ended.late else verdict.end_problem(ended)
    assert found
    for status in ("EXITED message Command exited with code 137", "KILLED message x"):
        killed = SEGV.replace("EXITED message x", status).replace("139", "137")
        assert not verdict.end_problem(outcome(killed, "CASE one OK 1", "JOBS DONE"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"must_not_count": ("rowReaders",)}, "rowReaders is 2"),
        ({"must_not_log": "WARN Faro"}, "an executor logged: WARN Faro: x"),
        ({"faro": scenarios.DECLINED}, "remoteBlocks is 1"),
    ],
)
def test_what_a_scenario_forbids_is_wrong_before_late(more, said):
    counted = "COUNTERS 0 {rowReaders=2.0 remoteBlocks.tcp=1.0}"
    found = outcome(counted, late=LATE, executor="one\nWARN Faro: x\n")
    assert (verdict.wrong_before_late(dataclasses.replace(USED, **more), found) or "") == said


@pytest.mark.parametrize("has_faults", [False, True])
def test_a_library_that_injects_faults_is_never_released(tmp_path, has_faults):
    binary = Path(shutil.which("env")).read_bytes() + b"FARO_FAULTS" * has_faults
    with zipfile.ZipFile(tmp_path / "some.jar", "w") as jar:
        jar.writestr(f"META-INF/native/linux-{platform.machine()}/libfaro_jni.so", binary)
    program = [Path(__file__).with_name("jar-contents"), tmp_path / "some.jar"]
    assert subprocess.call(program, stderr=subprocess.DEVNULL) == has_faults
    # The jar of the tests has them.
    assert subprocess.call([*program, "--tests"], stderr=subprocess.DEVNULL) != has_faults


# As a scenario that builds what it needs: the thread has no fixture that ends it.
SUITE = """
import subprocess
import threading
import time

def test_waits(tmp_path):
    command = f"echo $$ >{tmp_path}/part; mv {tmp_path}/part PID; sleep 600"
    threading.Thread(target=subprocess.run, args=(["sh", "-c", command],), daemon=True).start()
    time.sleep(600)
"""


def test_a_suite_that_is_terminated_leaves_nothing_running(tmp_path):
    suite, pid = tmp_path / "test_suite.py", tmp_path / "pid"
    suite.write_text(SUITE.replace("PID", str(pid)))
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)
    words = ["-B", "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, suite]
    program = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not pid.exists():
        assert program.poll() is None
        time.sleep(0.05)
    program.send_signal(signal.SIGTERM)
    assert program.wait() == 128 + signal.SIGTERM
    assert is_gone(int(pid.read_text()))
