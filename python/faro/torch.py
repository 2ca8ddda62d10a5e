"""Training of one PyTorch model by several processes that average their parameters.

    from faro.torch import ModelAverager

    averager = ModelAverager(model, every=4, mode="dssync")     # in every process
    for inputs, targets in loader:
        ...
        optimizer.step()
        averager.step()                                         # averages after every 4th step
    averager.finish()                                           # the exact mean: one model

It runs under torchrun, and so under Spark's TorchDistributor, or in a barrier stage of PySpark with
the team of docs/examples/sgd/faro_collective.py: `ModelAverager(model, team=team)`. Parameters on
the CPU are averaged, by Faro's collectives, or by Gloo's where Faro's cannot be used (a warning of
the logger `faro` gives the reason).

Models are averaged and not gradients: if a group averaged its gradients only, the replicas would
part for good. The optimizer's own state (momentum) stays each process's own.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import logging
import math
import os
import random
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from . import collective
from .collective import CollectiveError, FaroUnavailableError, Team
from .rendezvous import RendezvousError

__all__ = ["CollectiveError", "FaroUnavailableError", "ModelAverager", "RendezvousError"]

LOG = logging.getLogger("faro")
DTYPES = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}
BUFFERS = ("mean", "own")
LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Least that processes wait for each other at the beginning: they do not come at one time.
MEET_SECONDS = 300.0
# Gloo's groups are connections, so there are as many drawings of them as this, in turn.
GLOO_DRAWINGS = 8


class ModelAverager:
    """Averages the parameters of a model over the processes that train it. All of them give the
    same arguments, but for `settings` and `rack`.

    model: a torch.nn.Module on the CPU whose floats are float32 or float64. At the beginning all
        processes get the model of rank 0. Parameters that are added later are not averaged.
    every: local steps of the optimizer between two averages.
    mode: "grid" or "full" (a ring): the exact mean over all processes. "dssync": the mean within
        groups of `group` processes and more, drawn anew each time from `seed`.
    group: of mode "dssync", 2 and more; 0 for about the square root of all.
    buffers: "mean" averages the model's buffers of floats too (running means of batch norms); "own"
        leaves them to each process until `finish`, which averages them. Buffers of integers, such
        as counts of batches, stay each process's own.
    team: of a barrier stage. It has a mode, group, seed and time limit already, and no fallback.
    fallback: whether Gloo averages where Faro cannot; without it that is a FaroUnavailableError.
    timeout: seconds that one average may take, waiting for others included. At the beginning
        processes wait for each other as long, but 5 minutes at least.
    settings: of Faro's endpoint, such as {"fabric": "tcp"}, in bytes and milliseconds.
    rack: where this process is; those of one rack exchange with each other where they can.
    slow_apart: mode "dssync" keeps processes behind slow links apart. Gloo knows neither.

    Without a team the processes meet by the default group of torch.distributed, which is made from
    torchrun's variables if there is none, and then ends with `finish`.

    Errors: ValueError for an argument or a model that is not allowed, or that differs between the
    processes, with one text in all of them; RendezvousError where they do not meet; CollectiveError
    for an average that did not come about, which leaves the model as it was. The averager cannot be
    used after that.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        every: int = 1,
        mode: str = "grid",
        group: int = 0,
        seed: int = 0,
        buffers: str = "mean",
        team: object = None,
        fallback: bool = True,
        timeout: float = 60.0,
        settings: dict[str, object] | None = None,
        rack: str = "",
        slow_apart: bool = False,
    ):
        def arguments() -> dict[str, object]:
            collective.check_number("every", every, 1, 2**63 - 1)
            collective.check_word("buffers", buffers, BUFFERS)
            collective.check_flag("fallback", fallback)
            collective.check_own_arguments(settings, rack)
            found = collective.round_arguments(mode, group, seed, timeout, slow_apart)
            if team is not None and (found, fallback, settings, rack) != (
                OF_A_TEAM,
                True,
                None,
                "",
            ):
                raise ValueError(
                    "a team has its own mode, group, seed, timeout, settings, rack and slow_apart, "
                    "and no fallback: give these to what makes it"
                )
            return {"every": every, "buffers": buffers, "fallback": fallback, **found}

        self.steps = 0
        self._meeting = self._reducer = None
        try:
            if team is not None:
                self._reducer = _FaroReducer(team)
                arguments()
                tensors = _Tensors(model)
                self._reducer.compare(tensors, f"every {every}, buffers {buffers!r}")
            else:
                self._meeting = _Meeting(timeout)
                tensors = self._meeting.compared(lambda: _Tensors(model), arguments)
                collective.check_group(group, self._meeting.ranks)
                words = (mode, group, seed, "fail", timeout, settings, rack, slow_apart)
                self._reducer = self._joined(fallback, words)
                self._meeting.limit(timeout)
                self._reducer = self._reducer or _GlooReducer(self._meeting, *words[:3], timeout)
            self.every = every
            self._last = _flats([*tensors.parameters, *tensors.buffers])
            self._always = self._last if buffers == "mean" else _flats(tensors.parameters)
            self._begin_with_rank_0()
        except BaseException:
            self._close()
            raise

    def _begin_with_rank_0(self) -> None:
        """All get rank 0's values: the mean of these and of zeros is a part of them."""
        for flat in self._last:
            flat.gather(zero=self.rank > 0)
            self._reducer.mean_of_all(flat.values)
            flat.values *= self.ranks
        for flat in self._last:
            flat.scatter()

    @property
    def rank(self) -> int:
        return self._reducer.rank

    @property
    def ranks(self) -> int:
        return self._reducer.ranks

    @property
    def transport(self) -> str:
        """What averages: "faro" or "gloo"."""
        return self._reducer.name

    def step(self) -> bool:
        """Counts a step of the optimizer, and averages if it is the turn; returns whether it
        was."""
        self.steps += 1
        if self.steps % self.every:
            return False
        self._average(self._always, self._reducer.mean)
        return True

    def finish(self) -> None:
        """The exact mean of parameters and buffers, which gives all processes one model, and the
        end of the team. Every process calls it once, after its last step."""
        try:
            self._average(self._last, self._reducer.mean_of_all)
        finally:
            self._close()

    @staticmethod
    def _average(flats: list[_Flat], mean: Callable[[torch.Tensor], None]) -> None:
        """Changes the model once all has come."""
        for flat in flats:
            flat.gather()
            mean(flat.values)
        for flat in flats:
            flat.scatter()

    def _close(self) -> None:
        try:
            if self._reducer:
                self._reducer.close()
        finally:
            if self._meeting:
                self._meeting.close()

    def _joined(self, fallback: bool, words: tuple) -> _FaroReducer | None:
        """The team of Faro's, or none where Gloo takes its place; `words` are those of
        Team.join."""
        meeting = self._meeting
        try:
            return _FaroReducer(Team.join(meeting.gather, meeting.rank, *words))
        except FaroUnavailableError as reason:
            if not fallback:
                raise
            LOG.warning("Gloo averages the models, because Faro cannot: %s", reason)
            return None


# The arguments of a round that a team has already.
OF_A_TEAM = collective.round_arguments("grid", 0, 0, 60.0, False)


class _Flat:
    """Tensors of one dtype, and their values in a row."""

    def __init__(self, tensors: list[torch.Tensor]):
        self._tensors = tensors
        self.values = torch.empty(sum(one.numel() for one in tensors), dtype=tensors[0].dtype)

    @torch.no_grad()
    def gather(self, zero: bool = False) -> None:
        """Copies the tensors into the row, or zeros."""
        if zero:
            self.values.zero_()
        else:
            torch.cat([one.detach().reshape(-1) for one in self._tensors], out=self.values)

    @torch.no_grad()
    def scatter(self) -> None:
        """Copies the row back."""
        at = 0
        for one in self._tensors:
            one.copy_(self.values[at : at + one.numel()].view(one.shape))
            at += one.numel()


def _flats(tensors: list[torch.Tensor]) -> list[_Flat]:
    by_type = [[one for one in tensors if one.dtype == dtype] for dtype in DTYPES]
    return [_Flat(some) for some in by_type if some]


class _Tensors:
    """The model's parameters, and its buffers of floats."""

    def __init__(self, model: torch.nn.Module):
        collective.check_argument(
            "model", model, isinstance(model, torch.nn.Module), "a torch.nn.Module"
        )
        self.parameters, self.buffers = [], []
        # One line for each: what must be the same in all processes.
        self.lines = []
        for kind, found, named in (
            ("parameter", self.parameters, model.named_parameters()),
            ("buffer", self.buffers, model.named_buffers()),
        ):
            for name, one in named:
                if one.device.type != "cpu":
                    raise ValueError(
                        f"{kind} {name} is on {one.device}: faro.torch averages tensors on the "
                        "CPU; for others use torch.distributed.algorithms.model_averaging over NCCL"
                    )
                shape = " x ".join(map(str, one.shape)) or "1"
                self.lines.append(f"{kind} {name} of {shape} {str(one.dtype)[6:]}")
                if one.dtype in DTYPES:
                    found.append(one)
                elif kind == "parameter" or one.is_floating_point() or one.is_complex():
                    allowed = ", ".join(map(str, DTYPES))
                    raise ValueError(f"{kind} {name} is {one.dtype}; allowed: {allowed}")
        if not self.parameters:
            raise ValueError("the model has no parameters")

    def digest(self, *more: str) -> bytes:
        return hashlib.sha256("\n".join([*self.lines, *more]).encode()).digest()


class _Meeting:
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
            _met(lambda: dist.init_process_group("gloo", timeout=limit))
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.group = dist.group.WORLD if self._made_group else _group(seconds)

    def limit(self, timeout: float) -> None:
        """From now on they wait so many seconds for each other. A group's limit cannot be
        changed."""
        met, self.group = self.group, _group(timeout)
        if not self._made_group:
            dist.destroy_process_group(met)

    def gather(self, payload: bytes) -> list[bytes]:
        """The payloads of all, by rank."""
        lengths = self._all_gather(torch.tensor([len(payload)]))
        row = torch.zeros(int(max(lengths)), dtype=torch.uint8)
        row[: len(payload)] = torch.tensor(list(payload), dtype=torch.uint8)
        rows = self._all_gather(row)
        return [bytes(one[: int(count)].tolist()) for one, count in zip(rows, lengths)]

    def _all_gather(self, row: torch.Tensor) -> list[torch.Tensor]:
        rows = [torch.empty_like(row) for _ in range(self.ranks)]
        try:
            dist.all_gather(rows, row, group=self.group)
        except RuntimeError as error:
            raise RendezvousError(f"rank {self.rank} waits for another process: {error}") from error
        return rows

    def compared(
        self, look: Callable[[], _Tensors], arguments: Callable[[], dict[str, object]]
    ) -> _Tensors:
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
                pairs = itertools.zip_longest(lines, first, fillvalue="nothing more")
                for theirs, wanted in pairs:
                    if theirs != wanted:
                        raise ValueError(
                            f"rank {rank} has {theirs}, rank 0 has {wanted}: every process needs "
                            "the same model"
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


def _group(seconds: float, members: list[int] | None = None) -> object:
    """One of Gloo's, since others do not take tensors on the CPU."""
    limit = timedelta(seconds=seconds)
    return _met(lambda: dist.new_group(members, timeout=limit, backend="gloo"))


def _met(make: Callable[[], object]) -> object:
    try:
        return make()
    except (RuntimeError, ValueError) as error:
        raise RendezvousError(f"the processes do not meet: {error}") from error


class _FaroReducer:
    """A team of Faro's, for tensors."""

    name = "faro"

    def __init__(self, team: object):
        self._team = team
        self.rank, self.ranks = team.rank, team.ranks

    def compare(self, tensors: _Tensors, arguments: str) -> None:
        """Refuses models and arguments that differ, by sums alone: numbers are all the same if
        their number times the sum of their squares is the square of their sum."""
        mine = [float(byte) for byte in tensors.digest(arguments)]
        sums = torch.tensor([*mine, *(byte * byte for byte in mine)], dtype=torch.float64)
        self.mean_of_all(sums)
        sums = (sums * self.ranks).round()
        of_bytes, of_squares = sums[: len(mine)], sums[len(mine) :]
        if not torch.equal(self.ranks * of_squares, of_bytes * of_bytes):
            raise ValueError(
                f"the tasks differ in their models or arguments; rank {self.rank} has {arguments}, "
                f"{', '.join(tensors.lines)}"
            )

    def mean(self, values: torch.Tensor) -> None:
        self._team.mean(_memory(values))

    def mean_of_all(self, values: torch.Tensor) -> None:
        self._team.mean_of_all(_memory(values))

    def close(self) -> None:
        self._team.close()


def _memory(values: torch.Tensor) -> memoryview:
    """A row's own memory; torch needs numpy for that. The caller keeps the row meanwhile."""
    array = (DTYPES[values.dtype] * values.numel()).from_address(values.data_ptr())
    return memoryview(array).cast("B").cast("f" if values.dtype == torch.float32 else "d")


class _GlooReducer:
    """The same by torch.distributed."""

    name = "gloo"

    def __init__(self, meeting: _Meeting, mode: str, group: int, seed: int, timeout: float):
        self.rank, self.ranks, self._failed = meeting.rank, meeting.ranks, ""
        self._all, mine = meeting.group, []
        for groups in drawings(self.ranks, group, seed) if mode == "dssync" else []:
            # Every process has to make every group, in the same order.
            made = [_group(timeout, members) for members in groups]
            mine.append(next(one for one, of in zip(made, groups) if self.rank in of))
        self._rounds = itertools.cycle(mine or [self._all])

    def mean(self, values: torch.Tensor) -> None:
        self._mean(values, next(self._rounds))

    def mean_of_all(self, values: torch.Tensor) -> None:
        self._mean(values, self._all)

    def close(self) -> None:
        """The groups end with torch.distributed, unless this still had them."""
        self._all, self._rounds = None, itertools.repeat(None)
        self._failed = self._failed or "the averager has finished"

    def _mean(self, values: torch.Tensor, group: object) -> None:
        if self._failed:
            raise CollectiveError(self._failed)
        own = int(values.isnan().sum())
        try:
            dist.all_reduce(values, group=group)
        except RuntimeError as error:
            self._failed = f"Gloo: rank {self.rank} waits for another process: {error}"
            raise CollectiveError(self._failed) from error
        values /= dist.get_world_size(group)
        if values.isnan().any():
            who = f"rank {self.rank} brings {own} NaN" if own else "another process brings NaN"
            self._failed = f"Gloo: {who}"
            raise CollectiveError(self._failed)


def drawings(ranks: int, group: int, seed: int) -> list[list[list[int]]]:
    """Some rounds of groups that each have every rank once: no group is smaller than `group`, and
    sizes differ by one at most, as those that native/exchange draws."""
    group = group or max(2, math.isqrt(ranks))
    pick, rounds = random.Random(seed), []
    for _ in range(GLOO_DRAWINGS if ranks > 1 else 0):
        order, count = list(range(ranks)), max(1, ranks // group)
        pick.shuffle(order)
        rounds.append([sorted(order[at::count]) for at in range(count)])
    return rounds
