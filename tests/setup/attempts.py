"""Runs programs of the tests: each with its share of the processors, under the guard, and once more
where it was late.

*Wrong* (a test that failed) is never tried again. *Late* (the guard ended it) runs once more, with
all processors, when everything else has ended; a program that passes then is flaky, and is named.
nextest and pytest's plug-ins try again what was wrong, too.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Callable, NamedTuple, TypeVar

import guard
import processors

# libtest's and pytest's lines of a failed test; the word stands by itself where the test printed.
# libtest's note that one still runs is no progress.
WRONG = re.compile(
    r"^test .* \.\.\. FAILED$|^\S+::.* (?:FAILED|ERROR)\b|^(?:FAILED|ERROR)(?: |$)", re.M
)
STILL_RUNS = "has been running for over"
# As many as may have processors at a time. More would only stand in the queue, before the other
# phases' programs.
AT_ONCE = processors.ALL
# Seconds that all interrupted programs together may take to clean up.
CLEAN_UP = 30

Item = TypeVar("Item")
Result = TypeVar("Result")


class Ended(NamedTuple):
    """How an attempt ended."""

    code: int
    # Why the guard ended it, or nothing.
    late: str
    seconds: float


class _Running:
    """The programs that run, each the leader of a group of processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen] = []
        self._stopped = False

    @contextlib.contextmanager
    def start(self, command: list, **options: object) -> Iterator[subprocess.Popen]:
        with self._lock:
            if self._stopped:
                raise RuntimeError("interrupted")
            process = subprocess.Popen(command, start_new_session=True, **options)
            self._processes.append(process)
        try:
            yield process
        finally:
            # Also of a program that ended: what it has left behind.
            end(process)
            with self._lock:
                self._processes.remove(process)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            left = list(self._processes)
        end(*left)


_RUNNING = _Running()


def end(*processes: subprocess.Popen) -> None:
    """Interrupts groups of processes, so that all clean up at once, then kills what is left."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
    deadline = time.monotonic() + CLEAN_UP
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0, deadline - time.monotonic()))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def makes_progress(line: str) -> bool:
    return STILL_RUNS not in line


def run(
    command: list,
    log: Path,
    halves: int,
    is_mark: Callable[[str], bool] = makes_progress,
    silence: float = guard.SILENCE,
    ceiling: float = guard.CEILING,
    **options: object,
) -> Ended:
    """One attempt; all output is in `log`. 0 halves: the program takes its processors itself."""
    with processors.take(halves) if halves else contextlib.nullcontext(), log.open("wb") as output:
        started = time.monotonic()
        streams = {
            "stdin": subprocess.DEVNULL,
            "stdout": output,
            "stderr": subprocess.STDOUT,
        }
        with _RUNNING.start(command, **streams, **options) as process:
            late = guard.wait(process, log, is_mark, silence, ceiling)
        return Ended(process.returncode, late, time.monotonic() - started)


def is_wrong(text: str) -> bool:
    """Whether a test has failed in this output."""
    return bool(WRONG.search(text))


def in_order(
    items: Iterable[Item], work: Callable[[Item], Result]
) -> Iterator[tuple[Item, Result]]:
    """What `work` returns for each item, in order; several are worked on at a time.

    An exception or a signal to this process ends all that runs.
    """
    waiting: queue.SimpleQueue = queue.SimpleQueue()
    results: list[tuple[Item, Future]] = [(item, Future()) for item in items]
    for pair in results:
        waiting.put(pair)

    def worker() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                item, future = waiting.get_nowait()
                try:
                    future.set_result(work(item))
                except BaseException as error:
                    future.set_exception(error)

    for _ in range(AT_ONCE):
        # Daemons: who is interrupted does not wait for their turn in the queue.
        threading.Thread(target=worker, daemon=True).start()
    for item, future in results:
        yield item, future.result()


@contextlib.contextmanager
def ending_all() -> Iterator[None]:
    """When this context ends, so has all that `run` has started, also after a signal."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    # A shell's background job ignores interrupts, and so would all that it starts: these would
    # have to be killed.
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        _RUNNING.stop()
        signal.signal(signal.SIGTERM, before)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
