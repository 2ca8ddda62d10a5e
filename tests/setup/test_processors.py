"""The queue for the processors: who gets them, and that they come back."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import processors
import pytest
from processors import ALL, HALF, ONE, Queue

HERE = Path(__file__).resolve().parent
# Takes all processors, says so, and holds them until its standard input ends.
HOLDS = """
import sys
import processors
with processors.take(processors.ALL):
    print("has them", flush=True)
    sys.stdin.read()
"""


class Taker:
    """A thread that takes from a queue, and an event for when it has what it asked for."""

    def __init__(self, queue: Queue, halves: int) -> None:
        self.has = threading.Event()
        self._queue, self._halves = queue, halves
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()
        # It has it, or it stands in the queue.
        with queued(queue, lambda: self.has.is_set() or self._waits()):
            pass

    def _waits(self) -> bool:
        return any(halves == self._halves for halves, _ in self._queue._waiting)

    def _take(self) -> None:
        self._queue.take(self._halves)
        self.has.set()

    def ended(self) -> bool:
        self._thread.join(60)
        return self.has.is_set()


@contextlib.contextmanager
def queued(queue: Queue, condition):
    """Waits, with the queue's lock, until a condition holds."""
    done = threading.Condition(queue._lock)
    with done:
        while not condition():
            # Another thread changes the queue without telling.
            done.wait(0.01)
        yield


def test_two_programs_of_one_processor_run_at_a_time_and_a_third_waits():
    queue = Queue()
    first, second, third = (Taker(queue, ONE) for _ in range(3))
    assert first.ended()
    assert second.ended()
    assert not third.has.is_set()
    queue.give_back(ONE)
    assert third.ended()


def test_what_needs_few_passes_what_waits_for_all():
    queue = Queue()
    assert Taker(queue, ONE).ended()
    everything = Taker(queue, ALL)
    assert Taker(queue, HALF).ended()
    assert not everything.has.is_set()
    queue.give_back(HALF)
    queue.give_back(ONE)
    assert everything.ended()


def test_who_asked_first_is_first():
    queue = Queue()
    queue.take(ALL)
    first, second = Taker(queue, ALL), Taker(queue, ALL)
    queue.give_back(ALL)
    assert first.ended()
    assert not second.has.is_set()


def test_other_shares_are_refused():
    for halves in (0, 3, 5):
        with pytest.raises(ValueError, match=f"{halves} halves"):
            Queue().take(halves)


def test_a_process_that_dies_gives_back_what_it_had(monkeypatch):
    monkeypatch.setenv(processors.PHASE, "some phase")
    with processors.Server() as server:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HERE)},
        )
        try:
            assert holder.stdout.readline() == "has them\n"
        finally:
            holder.kill()
            holder.communicate()
        with processors.take(ALL):
            pass
        with processors.take(HALF, "another"):
            pass
    assert {"some phase", "another"} >= set(server.shares) >= {"some phase"}
    assert processors.SOCKET not in os.environ


def test_without_a_server_a_process_has_a_queue_of_its_own(monkeypatch):
    monkeypatch.delenv(processors.SOCKET, raising=False)
    with processors.take(ONE), processors.take(ONE):
        pass
    with processors.take(ALL):
        pass
