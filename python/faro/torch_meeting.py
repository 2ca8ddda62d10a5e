"""The processes as torch.distributed knows them, before Faro or beside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from . import collective
from .model_rows import Tensors, difference
from .rendezvous import RendezvousError

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Least that processes wait for each other at the beginning: they do not come at one time.
MEET_SECONDS = 300.0
# After a failed average, how long a process stays so that others, which are later, hear the reason.
LINGER_SECONDS = 5.0
REMEDY = (
    "; torch cannot make its process group again at once, so a process that makes one averager "
    "after another calls torch.distributed.init_process_group itself, once"
)


class Meeting:
    """The processes as torch.distributed knows them: how Faro's bootstrap ids get around."""

    def __init__(self, timeout: object):
        """The time limit is looked at later, in all processes."""
        good = isinstance(timeout, (int, float)) and timeout <= collective.MAX_TIMEOUT
        seconds = max(MEET_SECONDS, timeout) if good else MEET_SECONDS
        self._made_group = not dist.is_initialized()
        missing = [name for name in LAUNCHED if name not in os.environ]
        if self._made_group and missing:
            raise RendezvousError(
                f"{', '.join(missing)} not set: start the script with torchrun, call "
                "torch.distributed.init_process_group, or give the team of a barrier stage"
            )
        if self._made_group:
            limit = timedelta(seconds=seconds)
            _met(lambda: dist.init_process_group("gloo", timeout=limit), seconds, REMEDY)
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.group = dist.group.WORLD if self._made_group else group_of(seconds)

    def limit(self, timeout: float) -> None:
        """From now on they wait so many seconds for each other. A group's limit cannot be
        changed."""
        before, self.group = self.group, group_of(timeout)
        if not self._made_group:
            dist.destroy_process_group(before)

    def linger(self) -> None:
        """Stays until all have come here, or for a while."""
        with contextlib.suppress(RuntimeError):
            dist.monitored_barrier(self.group, timedelta(seconds=LINGER_SECONDS))

    def give_rank_0s(self, values: torch.Tensor) -> None:
        """Replaces the values by those of rank 0."""
        self._told(lambda: dist.broadcast(values, 0, group=self.group))

    def gather(self, payload: bytes) -> list[bytes]:
        """The payloads of all, by rank."""
        lengths = self._all_gather(torch.tensor([len(payload)]))
        # Gloo divides by the number of values.
        row = torch.zeros(max(1, *map(int, lengths)), dtype=torch.uint8)
        row[: len(payload)] = torch.tensor(list(payload), dtype=torch.uint8)
        rows = self._all_gather(row)
        return [bytes(one[: int(count)].tolist()) for one, count in zip(rows, lengths)]

    def _all_gather(self, row: torch.Tensor) -> list[torch.Tensor]:
        rows = [torch.empty_like(row) for _ in range(self.ranks)]
        self._told(lambda: dist.all_gather(rows, row, group=self.group))
        return rows

    def _told(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except RuntimeError as error:
            raise RendezvousError(f"rank {self.rank} waits for another process: {error}") from error

    def compared(
        self, look: Callable[[], Tensors], arguments: Callable[[], dict[str, object]]
    ) -> Tensors:
        """What `look` finds, if all processes find the same and have the same arguments; otherwise
        one error for all of them."""
        found = None

        def checked() -> dict[str, object]:
            nonlocal found
            given, found = arguments(), look()
            return given

        collective.same_everywhere(self.gather, self.rank, checked)
        digests = self.gather(found.digest())
        if digests.count(digests[0]) < self.ranks:
            told = self.gather("\n".join(found.lines).encode())
            first, *others = [one.decode().split("\n") for one in told]
            for rank, lines in enumerate(others, 1):
                if pair := difference(lines, first):
                    raise ValueError(
                        f"rank {rank} has {pair[0]}, rank 0 has {pair[1]}: every process needs the "
                        "same model"
                    )
        return found

    def close(self) -> None:
        # A group that is still referred to keeps its port and threads: this process could not make
        # the next averager.
        group, self.group = self.group, None
        if self._made_group:
            self._made_group = False
            dist.destroy_process_group()
        elif group and dist.is_initialized():
            dist.destroy_process_group(group)


def group_of(seconds: float, members: list[int] | None = None) -> object:
    """One of Gloo's, since others do not take tensors on the CPU."""
    limit = timedelta(seconds=seconds)
    return _met(lambda: dist.new_group(members, timeout=limit, backend="gloo"), seconds)


def _met(make: Callable[[], object], seconds: float, remedy: str = "") -> object:
    try:
        return make()
    except (RuntimeError, ValueError) as error:
        text = f"the processes do not meet, in waits of {seconds:g} s: {error}{remedy}"
        raise RendezvousError(text) from error
