"""Who of the tests may use the processors: one queue, which all phases of `make test` share.

It gives out the machine's two processors as four halves. What computes takes one processor, what
waits most of the time half of one, and what must have nothing beside it takes all. `tests/run`
opens the queue and names its socket in FARO_PROCESSORS; a suite that is started by itself has a
queue of its own. What a process has taken comes back when it ends, however it ends; the tokens of a
jobserver, as make and cargo have it, do not.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HALF, ONE, ALL = 1, 2, 4
SOCKET = "FARO_PROCESSORS"
# On whose account a process takes them: the phase that `tests/run` started it for.
PHASE = "FARO_PHASE"
LONGEST_NAME = 60


class Queue:
    """Gives halves to who asked first, except that what needs few passes what waits for many."""

    def __init__(self) -> None:
        self._free = ALL
        self._waiting: list[tuple[int, threading.Event]] = []
        self._lock = threading.Lock()

    def take(self, halves: int) -> None:
        if halves not in (HALF, ONE, ALL):
            raise ValueError(
                f"{halves} halves of a processor; {HALF}, {ONE} and {ALL} are possible"
            )
        turn = threading.Event()
        with self._lock:
            self._waiting.append((halves, turn))
            self._grant()
        turn.wait()

    def give_back(self, halves: int) -> None:
        with self._lock:
            self._free += halves
            self._grant()

    def _grant(self) -> None:
        for entry in list(self._waiting):
            halves, turn = entry
            if halves <= self._free:
                self._free -= halves
                self._waiting.remove(entry)
                turn.set()


class Server:
    """A queue for this process and all that it starts, as a context."""

    def __init__(self) -> None:
        # By phase, seconds of all processors together: what it took, times how long.
        self.shares: Counter[str] = Counter()
        self._queue = Queue()
        self._place = tempfile.TemporaryDirectory(prefix="faro-processors-")
        self._path = Path(self._place.name) / "queue"
        self._socket = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Server:
        self._socket.bind(str(self._path))
        self._socket.listen(128)
        os.environ[SOCKET] = str(self._path)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        os.environ.pop(SOCKET, None)
        self._socket.close()
        self._place.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._socket.accept()[0]
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            asked = client.recv(1 + LONGEST_NAME)
            if not asked:
                return
            halves, phase = asked[0], asked[1:].decode()
            self._queue.take(halves)
            since = time.monotonic()
            try:
                client.sendall(b".")
                # The end of the connection: it has what it asked for until then.
                client.recv(1)
            finally:
                self._queue.give_back(halves)
                self.shares[phase] += (time.monotonic() - since) * halves / ALL


_OWN = Queue()


@contextlib.contextmanager
def take(halves: int, phase: str = "") -> Iterator[None]:
    """Waits for HALF, ONE or ALL of the processors, and has them for as long as the context."""
    path = os.environ.get(SOCKET)
    if path:
        name = phase or os.environ.get(PHASE, "")
        with socket.socket(socket.AF_UNIX) as queue:
            queue.connect(path)
            queue.sendall(bytes([halves]) + name.encode()[:LONGEST_NAME])
            if not queue.recv(1):
                raise RuntimeError("the queue for the processors has ended")
            yield
        return
    _OWN.take(halves)
    try:
        yield
    finally:
        _OWN.give_back(halves)
