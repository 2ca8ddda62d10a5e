"""Processes that have only an address of the first one in common exchange a few bytes.

What a launcher such as torchrun sets is enough: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT. Rank 0
listens there, the others connect. Bytes travel in the clear, as those of torch's own store do.

    with Rendezvous.from_environment() as rendezvous:
        everyone = rendezvous.gather(b"from this one")      # by rank, at every process
"""

from __future__ import annotations

import os
import socket
import struct
import time

MAGIC = b"faro-rv1"
MAX_BYTES = 64 << 10
# A connection that does not say at once who it is, is not one of ours.
HELLO_SECONDS = 5.0
RETRY_SECONDS = 0.05


class RendezvousError(Exception):
    """The processes do not meet."""


class Rendezvous:
    """One process's connections: rank 0 has one to each other, the others have one to rank 0."""

    def __init__(self, rank: int, ranks: int, host: str, port: int, timeout: float = 60.0):
        if not 0 <= rank < ranks:
            raise ValueError(f"rank {rank} of {ranks}; allowed: 0 to {ranks - 1}")
        self.rank, self.ranks = rank, ranks
        self._timeout = timeout
        self._peers: dict[int, socket.socket] = {}
        try:
            if rank:
                self._peers[0] = self._connect(host, port)
            elif ranks > 1:
                self._accept_all(host, port)
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_environment(cls, timeout: float = 60.0) -> Rendezvous:
        """RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who and where."""
        names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        missing = [name for name in names if name not in os.environ]
        if missing:
            raise RendezvousError(f"{', '.join(missing)} not set: start it with a launcher")
        rank, ranks, host, port = (os.environ[name] for name in names)
        try:
            rank, ranks, port = int(rank), int(ranks), int(port)
        except ValueError as error:
            raise RendezvousError(f"RANK, WORLD_SIZE or MASTER_PORT: {error}") from error
        return cls(rank, ranks, host, port, timeout)

    def __enter__(self) -> Rendezvous:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def gather(self, payload: bytes) -> list[bytes]:
        """The payloads of all processes, by rank. Every process calls it equally often."""
        if len(payload) > MAX_BYTES:
            raise ValueError(f"{len(payload)} bytes; at most {MAX_BYTES} are possible")
        try:
            if self.rank:
                _send(self._peers[0], payload)
                return [_receive(self._peers[0]) for _ in range(self.ranks)]
            payloads = [payload]
            payloads += [_receive(self._peers[rank]) for rank in range(1, self.ranks)]
            for rank in range(1, self.ranks):
                for one in payloads:
                    _send(self._peers[rank], one)
            return payloads
        except OSError as error:
            raise RendezvousError(f"rank {self.rank} lost another process: {error}") from error

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    def _connect(self, host: str, port: int) -> socket.socket:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                peer = socket.create_connection((host, port), timeout=self._timeout)
                break
            except OSError as error:
                # Rank 0 may start later.
                if time.monotonic() > deadline:
                    text = f"rank {self.rank} cannot reach rank 0 at {host}:{port}: {error}"
                    raise RendezvousError(text) from error
                time.sleep(RETRY_SECONDS)
        peer.settimeout(self._timeout)
        peer.sendall(MAGIC + struct.pack("<II", self.rank, self.ranks))
        return peer

    def _accept_all(self, host: str, port: int) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        deadline = time.monotonic() + self._timeout
        with socket.create_server((host, port), family=family, backlog=self.ranks) as server:
            while len(self._peers) < self.ranks - 1:
                server.settimeout(max(0.01, deadline - time.monotonic()))
                try:
                    peer, _ = server.accept()
                except OSError as error:
                    missing = [rank for rank in range(1, self.ranks) if rank not in self._peers]
                    shown = ", ".join(map(str, missing[:5]))
                    more = " and others" if len(missing) > 5 else ""
                    text = f"rank {shown}{more} did not come to {host}:{port}: {error}"
                    raise RendezvousError(text) from error
                self._welcome(peer)

    def _welcome(self, peer: socket.socket) -> None:
        try:
            peer.settimeout(HELLO_SECONDS)
            hello = _read(peer, len(MAGIC) + 8)
        except OSError:
            peer.close()
            return
        rank, ranks = struct.unpack("<II", hello[len(MAGIC) :])
        if hello[: len(MAGIC)] != MAGIC:
            peer.close()
            return
        if ranks != self.ranks or not 0 < rank < ranks or rank in self._peers:
            peer.close()
            raise RendezvousError(
                f"a process says that it is rank {rank} of {ranks}; rank 0 is one of {self.ranks}"
                + (", and has that rank already" if rank in self._peers else "")
            )
        peer.settimeout(self._timeout)
        self._peers[rank] = peer


def _send(peer: socket.socket, payload: bytes) -> None:
    peer.sendall(struct.pack("<I", len(payload)) + payload)


def _receive(peer: socket.socket) -> bytes:
    (length,) = struct.unpack("<I", _read(peer, 4))
    if length > MAX_BYTES:
        raise OSError(f"{length} bytes were announced, at most {MAX_BYTES} are possible")
    return _read(peer, length)


def _read(peer: socket.socket, count: int) -> bytes:
    buffer = bytearray()
    while len(buffer) < count:
        chunk = peer.recv(count - len(buffer))
        if not chunk:
            raise OSError("the connection was closed")
        buffer += chunk
    return bytes(buffer)
