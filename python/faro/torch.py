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
import itertools
import json
import logging
import math
import os
import random

import torch
import torch.distributed as dist

from .collective import FaroUnavailableError, Team

__all__ = ["ModelAverager"]

LOG = logging.getLogger("faro")
DTYPES = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}
BUFFERS = ("mean", "own")
# Of a message between the processes while they meet: Faro's bootstrap ids have at most 4 KiB and a
# line.
MAX_TOLD = 8 << 10
# Gloo's groups are connections, so there are as many drawings of them as this, in turn.
GLOO_DRAWINGS = 8


class ModelAverager:
    """Averages the parameters of a model over the processes that train it.

    model: a torch.nn.Module on the CPU whose floats are float32 or float64. At the beginning all
        processes get the model of rank 0. Parameters that are added later are not averaged.
    every: local steps of the optimizer between two averages.
    mode: "grid" or "full" (a ring): the exact mean over all processes. "dssync": the mean within
        groups of `group` processes (0: about the square root of all), drawn anew each time from
        `seed`.
    buffers: "mean" averages the model's buffers of floats too (running means of batch norms); "own"
        leaves them to each process until `finish`, which averages them. Buffers of integers, such
        as counts of batches, stay each process's own.
    team: of a barrier stage, with its own mode. Without one the processes meet by the default group
        of torch.distributed, which is made from torchrun's variables if there is none.
    fallback: whether Gloo averages where Faro cannot; without it that is a FaroUnavailableError.
    timeout: seconds that one average may take.
    settings: of Faro's endpoint, such as {"fabric": "tcp"}.
    rack: where this process is; those of one rack exchange with each other where they can.
    slow_apart: mode "dssync" keeps processes behind slow links apart. Gloo knows neither.
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
        if every < 1 or buffers not in BUFFERS:
            allowed = f"1 and more; {', '.join(BUFFERS)}"
            raise ValueError(f"every {every}, buffers {buffers!r}; allowed: {allowed}")
        self.every, self.steps = every, 0
        self._meeting = None
        if team is not None:
            tensors = _tensors(model)
            self._reducer = _FaroReducer(team)
        else:
            self._meeting = _Meeting()
            try:
                tensors = self._meeting.compared(lambda: _tensors(model))
                words = (mode, group, seed, "fail", timeout, settings, rack, slow_apart)
                self._reducer = self._joined(fallback, words)
            except BaseException:
                self._meeting.close()
                raise
        parameters, found_buffers = tensors
        self._last = _flats([*parameters, *found_buffers])
        self._always = self._last if buffers == "mean" else _flats(parameters)
        # Rank 0's values and zeros: the mean is a part of the first.
        for flat in self._last:
            flat.gather(zero=self.rank > 0)
            self._reducer.mean_of_all(flat.values)
            flat.values *= self.ranks
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
        for flat in self._always:
            flat.gather()
            self._reducer.mean(flat.values)
            flat.scatter()
        return True

    def finish(self) -> None:
        """The exact mean of parameters and buffers, which gives all processes one model, and the
        end of the team. Every process calls it once, after its last step."""
        for flat in self._last:
            flat.gather()
            self._reducer.mean_of_all(flat.values)
            flat.scatter()
        self._reducer.close()
        if self._meeting:
            self._meeting.close()

    def _joined(self, fallback: bool, words: tuple) -> _FaroReducer | _GlooReducer:
        """What averages; `words` are those of Team.join."""
        meeting = self._meeting
        try:
            return _FaroReducer(Team.join(meeting.gather, meeting.rank, *words))
        except FaroUnavailableError as reason:
            if not fallback:
                raise
            LOG.warning("Gloo averages the models, because Faro cannot: %s", reason)
            return _GlooReducer(meeting, *words[:3])


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


def _tensors(model: torch.nn.Module) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The model's parameters, and its buffers of floats."""
    parameters, buffers = [], []
    for kind, found, named in (
        ("parameter", parameters, model.named_parameters()),
        ("buffer", buffers, model.named_buffers()),
    ):
        for name, one in named:
            if one.device.type != "cpu":
                raise ValueError(
                    f"{kind} {name} is on {one.device}: faro.torch averages tensors on the CPU; "
                    "for others use torch.distributed.algorithms.model_averaging over NCCL"
                )
            if one.dtype in DTYPES:
                found.append(one)
            elif kind == "parameter" or one.is_floating_point() or one.is_complex():
                allowed = ", ".join(map(str, DTYPES))
                raise ValueError(f"{kind} {name} is {one.dtype}; allowed: {allowed}")
    if not parameters:
        raise ValueError("the model has no parameters")
    return parameters, buffers


def _description(found: tuple[list[torch.Tensor], list[torch.Tensor]]) -> str:
    """What must be the same in all processes."""
    texts = []
    for kind, tensors in zip(("parameters", "buffers"), found):
        sizes = [
            f"{sum(one.numel() for one in tensors if one.dtype == dtype)} {str(dtype)[6:]} values"
            for dtype in DTYPES
            if any(one.dtype == dtype for one in tensors)
        ]
        texts.append(f"{len(tensors)} {kind} of {' and '.join(sizes)}" if sizes else f"no {kind}")
    return ", ".join(texts)


class _Meeting:
    """The processes as torch.distributed knows them: how Faro's bootstrap ids get around."""

    def __init__(self) -> None:
        self._made_group = not dist.is_initialized()
        if self._made_group:
            missing = [n for n in ("RANK", "WORLD_SIZE", "MASTER_ADDR") if n not in os.environ]
            if missing:
                raise RuntimeError(
                    f"{', '.join(missing)} not set: start the script with torchrun, call "
                    "torch.distributed.init_process_group, or give the team of a barrier stage"
                )
            dist.init_process_group("gloo")
        # Others, such as NCCL, do not take tensors on the CPU.
        is_gloo = dist.get_backend() == "gloo"
        self.group = dist.group.WORLD if is_gloo else dist.new_group(backend="gloo")
        self.rank, self.ranks = dist.get_rank(self.group), dist.get_world_size(self.group)

    def gather(self, payload: bytes) -> list[bytes]:
        """The payloads of all, by rank."""
        if len(payload) > MAX_TOLD:
            payload = payload[:MAX_TOLD]
        row = torch.zeros(4 + MAX_TOLD, dtype=torch.uint8)
        told = len(payload).to_bytes(4, "little") + payload
        row[: len(told)] = torch.tensor(list(told), dtype=torch.uint8)
        rows = [torch.empty_like(row) for _ in range(self.ranks)]
        dist.all_gather(rows, row, group=self.group)
        lengths = [int.from_bytes(bytes(one[:4].tolist()), "little") for one in rows]
        return [bytes(one[4 : 4 + count].tolist()) for one, count in zip(rows, lengths)]

    def compared(self, look) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """What `look` finds, if all processes find the same; otherwise one error for all of
        them."""
        found = None
        try:
            found = look()
            told = {"model": _description(found)}
        except ValueError as error:
            told = {"refused": str(error)}
        all_told = [json.loads(one) for one in self.gather(json.dumps(told).encode())]
        for rank, one in enumerate(all_told):
            if "refused" in one:
                raise ValueError(f"rank {rank}: {one['refused']}")
        for rank, one in enumerate(all_told):
            if one != all_told[0]:
                raise ValueError(
                    f"rank {rank} has {one['model']}, rank 0 has {all_told[0]['model']}: every "
                    "process needs the same model"
                )
        return found

    def close(self) -> None:
        # A group that is still referred to keeps its port and threads: this process could not make
        # the next averager.
        self.group = None
        if self._made_group:
            dist.destroy_process_group()


class _FaroReducer:
    """A team of Faro's, for tensors."""

    name = "faro"

    def __init__(self, team: object):
        self._team = team
        self.rank, self.ranks = team.rank, team.ranks

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

    def __init__(self, meeting: _Meeting, mode: str, group: int, seed: int):
        self._all, self.rank, self.ranks = meeting.group, meeting.rank, meeting.ranks
        mine = []
        for groups in drawings(self.ranks, group, seed) if mode == "dssync" else []:
            # Every process has to make every group, in the same order.
            made = [dist.new_group(members, backend="gloo") for members in groups]
            mine.append(next(one for one, of in zip(made, groups) if self.rank in of))
        self._rounds = itertools.cycle(mine or [self._all])

    def mean(self, values: torch.Tensor) -> None:
        self._mean(values, next(self._rounds))

    def mean_of_all(self, values: torch.Tensor) -> None:
        self._mean(values, self._all)

    def close(self) -> None:
        """The groups end with torch.distributed, unless this still had them."""
        self._all = self._rounds = None

    @staticmethod
    def _mean(values: torch.Tensor, group: object) -> None:
        dist.all_reduce(values, group=group)
        values /= dist.get_world_size(group)


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
