"""The guard, and what becomes of programs that it ended or that failed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import attempts
import guard
import processors
import pytest

HERE = Path(__file__).resolve().parent


class Clock:
    """The guard's time, which goes on only when it waits for the process."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Process:
    """A process that writes what it is told to at each second, and ends after the last one."""

    def __init__(self, clock: Clock, log: Path, seconds: list[str]) -> None:
        self._clock, self._log, self._seconds = clock, log, seconds
        log.write_text("")

    def wait(self, timeout: float) -> int:
        if not self._seconds:
            return 0
        self._clock.now += 1
        with self._log.open("a") as log:
            log.write(self._seconds.pop(0))
        raise subprocess.TimeoutExpired("process", timeout)


@pytest.fixture
def waited(monkeypatch, tmp_path):
    """A function that lets the guard wait for a process of these seconds, with 5 s of silence."""

    def run(*seconds: str, is_mark=lambda _: True, ceiling: float = 100) -> str:
        clock = Clock()
        monkeypatch.setattr(guard.time, "monotonic", clock.monotonic)
        process = Process(clock, tmp_path / "log", list(seconds))
        return guard.wait(process, tmp_path / "log", is_mark, silence=5, ceiling=ceiling)

    return run


class TestGuard:
    def test_lines_are_progress_however_slow_they_come(self, waited):
        assert waited(*["", "", "", "", "a line\n"] * 10) == ""

    def test_silence_is_late(self, waited):
        assert waited("a line\n", *[""] * 20) == "no progress for 5 s"

    def test_half_a_line_is_no_progress(self, waited):
        assert waited(*["."] * 20) == "no progress for 5 s"

    def test_only_marks_are_progress(self, waited):
        assert waited(*["no mark\n"] * 20, is_mark=lambda line: line == "mark") != ""
        assert waited(*["", "mark\n"] * 20, is_mark=lambda line: line == "mark") == ""

    def test_the_ceiling_holds_beside_all_progress(self, waited):
        assert waited(*["a line\n"] * 20, ceiling=10) == "still ran after 10 s"


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


class TestRun:
    def test_output_and_exit_code(self, tmp_path):
        log = tmp_path / "log"
        program = "import sys; print('out'); sys.stdout.flush(); sys.exit('error')"
        ended = attempts.run(python(program), log, processors.ONE)
        assert (ended.code, ended.late) == (1, "")
        assert log.read_text() == "out\nerror\n"

    def test_a_late_program_ends_with_all_that_it_started(self, tmp_path):
        log = tmp_path / "log"
        program = (
            "import subprocess, sys; child = subprocess.Popen(['sleep', '600'])\n"
            "print(child.pid, flush=True); child.wait()"
        )
        ended = attempts.run(python(program), log, processors.ONE, silence=2)
        assert ended.late == "no progress for 2 s"
        assert ended.code != 0
        pid = int(log.read_text().split()[0])
        assert is_gone(pid)

    def test_what_an_ended_program_left_behind_ends_too(self, tmp_path):
        log = tmp_path / "log"
        program = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
        assert attempts.run(python(program), log, processors.ONE).code == 0
        assert is_gone(int(log.read_text().split()[0]))

    def test_an_interrupt_ends_what_runs(self, tmp_path):
        """Nobody waits for who stands in the queue."""
        read, write = os.pipe()
        program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
import attempts, processors
def work(number):
    log = Path({str(tmp_path)!r}) / str(number)
    command = "echo $$; echo up >/proc/self/fd/{write}; exec sleep 600"
    return attempts.run(["sh", "-c", command], log, processors.ALL, pass_fds=[{write}])
with attempts.ending_all():
    list(attempts.in_order(range(3), work))
"""
        process = subprocess.Popen(python(program), pass_fds=[write], start_new_session=True)
        os.close(write)
        with os.fdopen(read) as up:
            assert up.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        assert process.returncode == 143
        pids = [int(log.read_text()) for log in tmp_path.iterdir() if log.read_text()]
        assert len(pids) == 1
        assert is_gone(pids[0])

    def test_what_a_background_job_starts_hears_interrupts(self, tmp_path):
        """A shell makes its background jobs ignore them. Who does is killed 30 s later."""
        log = tmp_path / "log"
        program = f"""
import signal, sys
from pathlib import Path
sys.path.insert(0, {str(HERE)!r})
import attempts, processors
with attempts.ending_all():
    attempts.run(["grep", "SigIgn", "/proc/self/status"], Path({str(log)!r}), processors.ONE)
sys.exit(signal.getsignal(signal.SIGINT) != signal.SIG_IGN)
"""
        ignores = "trap '' INT; exec \"$@\""
        subprocess.run(["sh", "-c", ignores, "sh", *python(program)], check=True)
        ignored = int(log.read_text().split()[1], 16)
        assert not ignored >> (signal.SIGINT - 1) & 1


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a signal takes a moment."""
    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([file], [], [], 60)[0])
    finally:
        os.close(file)


def test_results_come_in_order():
    assert list(attempts.in_order([3, 1, 2], lambda n: n * n)) == [(3, 9), (1, 1), (2, 4)]


def test_an_exception_is_the_callers():
    with pytest.raises(ZeroDivisionError):
        list(attempts.in_order([1, 0], lambda n: 1 // n))


@pytest.mark.parametrize(
    "line",
    [
        "test shm::bring_the_bytes ... FAILED",
        "test_doctor.py::test_too_little_locked_memory FAILED",
        "FAILED test_doctor.py::test_too_little_locked_memory - assert",
        "test memory::is_given_back ... WARN the device is lost\nFAILED",
        "test_doctor.py::test_too_little_locked_memory a line of the test\nFAILED",
    ],
)
def test_a_failed_test_is_wrong(line):
    assert attempts.is_wrong(f"one\n{line}\nother\n")


def test_what_has_not_failed_is_not_wrong():
    text = "test a ... ok\ntest b ... ignored, FAILED before\ntest_a.py::test_b ok\n"
    assert not attempts.is_wrong(text)
    assert not attempts.makes_progress("test a has been running for over 60 seconds")
