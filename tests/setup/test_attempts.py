"""What is late, what is wrong, and what is left of a program that the guard ended.

Stays because a fault here would make red tests green everywhere.
"""

from __future__ import annotations

import os
import select
import sys

import attempts
import processors
import pytest

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
