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
import logging
import math
import random
from collections.abc import Callable

import torch
import torch.distributed as dist

from . import collective
from .collective import CollectiveError, FaroUnavailableError, Team
from .model_rows import Row, Tensors, difference, scale_for
from .rendezvous import RendezvousError
from .torch_meeting import Meeting, group_of

__all__ = ["CollectiveError", "FaroUnavailableError", "ModelAverager", "RendezvousError"]

LOG = logging.getLogger("faro")
BUFFERS = ("mean", "own")
# Gloo's groups are connections, so there are as many drawings of them as this, in turn.
GLOO_DRAWINGS = 8
# What an average is for.
STEP, FINISH = 1, 2


class ModelAverager:
    """Averages the parameters of a model over the processes that train it. All of them give the
    same arguments, but for `settings` and `rack`.

    model: a torch.nn.Module on the CPU whose floats are float32 or float64. At the beginning all
        processes get the model of rank 0. Its tensors keep their names, shapes and types.
    every: local steps of the optimizer between two averages.
    mode: "grid" or "full" (a ring): the exact mean over all processes. "dssync": the mean within
        groups of `group` processes and more, drawn anew each time from `seed`.
    group: of mode "dssync", 2 and more; 0 for about the square root of all.
    buffers: "mean" averages the model's buffers of floats too (running means of batch norms); "own"
        leaves them to each process until `finish`, which averages them. Buffers of integers, such
        as counts of batches, and buffers that are not persistent stay each process's own.
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
    for an average that did not come about, which leaves the model as it was. The averager has ended
    then; `finish` need not be called.
    """

    # Gloo's threads cannot write to tensors that are made in inference mode.
    @torch.inference_mode(False)
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
            return {"every": every, "buffers": buffers, "fallback": fallback}

        self.steps, self._averages, self._failed = 0, 0, ""
        self._meeting = self._reducer = None
        try:
            if team is not None:
                self._reducer = _FaroReducer(team)
                arguments()
                given = (mode, group, seed, timeout, settings, rack, slow_apart, fallback)
                if given != OF_A_TEAM:
                    raise ValueError(
                        "a team has its own mode, group, seed, timeout, settings, rack and "
                        "slow_apart, and no fallback: give these to what makes it"
                    )
                tensors = Tensors(model)
                self._reducer.compare(tensors, f"every {every}, buffers {buffers!r}")
                self._make_rows(tensors, buffers, self._reducer.give_rank_0s)
            else:
                self._meeting = Meeting(timeout)
                tensors = self._meeting.compared(lambda: Tensors(model), arguments)
                words = (mode, group, seed, "fail", timeout, settings, rack, slow_apart)
                self._reducer = self._joined(fallback, words)
                self._make_rows(tensors, buffers, self._meeting.give_rank_0s)
                self._meeting.limit(timeout)
                self._reducer = self._reducer or _GlooReducer(self._meeting, *words[:3], timeout)
        except BaseException:
            self._close(waits=False)
            raise
        self.every, self._model, self._lines = every, model, tensors.lines

    def _make_rows(
        self, tensors: Tensors, buffers: str, give_rank_0s: Callable[[torch.Tensor], None]
    ) -> None:
        """The rows that are averaged, and rank 0's model in all processes."""
        ranks = (self._meeting or self._reducer).ranks
        self._last = tensors.rows(ranks, with_buffers=True)
        self._always = self._last if buffers == "mean" else tensors.rows(ranks, with_buffers=False)
        for row in self._last:
            row.gather(tensors, 0, scale=1)
            give_rank_0s(row.values)
        for row in self._last:
            row.scatter(tensors, scale=1)

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

    @torch.inference_mode(False)
    def step(self) -> bool:
        """Counts a step of the optimizer, and averages if it is the turn; returns whether it
        was."""
        self.steps += 1
        if self.steps % self.every:
            return False
        self._average(self._always, self._reducer.mean, STEP)
        return True

    @torch.inference_mode(False)
    def finish(self) -> None:
        """The exact mean of parameters and buffers, which gives all processes one model, and the
        end of the team. Every process calls it once, after its last step."""
        try:
            self._average(self._last, self._reducer.mean_of_all, FINISH)
        except BaseException:
            self._close(waits=False)
            raise
        self._failed = "the averager has finished"
        self._close(waits=True)

    def _average(self, rows: list[Row], mean: Callable[[torch.Tensor], None], purpose: int) -> None:
        """Changes the model once all has come."""
        if self._failed:
            raise CollectiveError(self._failed)
        try:
            tensors = Tensors(self._model)
            if found := difference(tensors.lines, self._lines):
                raise ValueError(
                    f"the model has {found[0]}; when the averager was made it had {found[1]}"
                )
            # Of this average; small, so that a sum of many is exact.
            number = 3 * (self._averages % 1000) + purpose
            for row in rows:
                row.gather(tensors, number)
                mean(row.values)
                if row.values[-1] != number:
                    what = "step" if purpose == STEP else "finish"
                    raise CollectiveError(
                        f"average {self._averages + 1}, by `{what}` in rank {self.rank}, is not "
                        "the same in another process: all make as many, and `finish` after them"
                    )
            for row in rows:
                row.scatter(tensors)
        except BaseException as error:
            self._failed = f"{error}" or type(error).__name__
            if self._meeting and isinstance(error, CollectiveError):
                self._meeting.linger()
            raise
        self._averages += 1

    def _close(self, waits: bool) -> None:
        """`waits` for the others, since one that goes first may take with it what it has sent."""
        try:
            if self._reducer:
                self._reducer.close(waits)
        except RendezvousError as error:
            LOG.warning("the last average has come, and a process was lost after it: %s", error)
        finally:
            if self._meeting:
                self._meeting.close()

    def _joined(self, fallback: bool, words: tuple) -> _FaroReducer | None:
        """The team of Faro's, or none where Gloo takes its place; `words` are those of Team.join,
        which also compares them."""
        meeting = self._meeting
        try:
            return _FaroReducer(Team.join(meeting.gather, meeting.rank, *words))
        except FaroUnavailableError as reason:
            if not fallback:
                raise
            LOG.warning("Gloo averages the models, because Faro cannot: %s", reason)
            return None


# What a team has already, where nothing is given: mode, group, seed, timeout, settings, rack,
# slow_apart, fallback.
OF_A_TEAM = ("grid", 0, 0, 60.0, None, "", False, True)


class _FaroReducer:
    """A team of Faro's, for tensors."""

    name = "faro"

    def __init__(self, team: object):
        self._team = team
        self.rank, self.ranks = team.rank, team.ranks

    def compare(self, tensors: Tensors, arguments: str) -> None:
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

    def give_rank_0s(self, values: torch.Tensor) -> None:
        """Replaces the values by those of rank 0: those of float32 exactly, because a double holds
        their product with a number of processes."""
        products, scale = torch.zeros_like(values, dtype=torch.float64), scale_for(self.ranks)
        if self.rank == 0:
            products.copy_(values).mul_(self.ranks * scale)
        self.mean_of_all(products)
        values.copy_(products.div_(scale))

    def mean(self, values: torch.Tensor) -> None:
        self._team.mean(_memory(values))

    def mean_of_all(self, values: torch.Tensor) -> None:
        self._team.mean_of_all(_memory(values))

    def close(self, waits: bool) -> None:
        if waits or not isinstance(self._team, Team):
            self._team.close()
        else:
            self._team.leave()


def _memory(values: torch.Tensor) -> memoryview:
    """A row's own memory; torch needs numpy for that. The caller keeps the row meanwhile."""
    kind, letter = (
        (ctypes.c_float, "f") if values.dtype == torch.float32 else (ctypes.c_double, "d")
    )
    array = (kind * values.numel()).from_address(values.data_ptr())
    return memoryview(array).cast("B").cast(letter)


class _GlooReducer:
    """The same by torch.distributed."""

    name = "gloo"

    def __init__(self, meeting: Meeting, mode: str, group: int, seed: int, timeout: float):
        self.rank, self.ranks, self._meeting = meeting.rank, meeting.ranks, meeting
        mine = self._mine = []
        for groups in drawings(self.ranks, group, seed) if mode == "dssync" else []:
            # Every process has to make every group, in the same order.
            made = [group_of(timeout, members) for members in groups]
            mine.append(next(one for one, of in zip(made, groups) if self.rank in of))
        self._rounds = itertools.cycle(mine or [meeting.group])

    def mean(self, values: torch.Tensor) -> None:
        self._mean(values, next(self._rounds))

    def mean_of_all(self, values: torch.Tensor) -> None:
        self._mean(values, self._meeting.group)

    def close(self, waits: bool) -> None:
        """Ends the groups, whose other members notice it by their connections."""
        try:
            if waits:
                self._meeting.gather(b"")
        finally:
            self._rounds = None
            while self._mine and dist.is_initialized():
                dist.destroy_process_group(self._mine.pop())

    def _mean(self, values: torch.Tensor, group: object) -> None:
        # Gloo would add what is not the same.
        count, brings = values.numel(), self.rank if values.isnan().any() else -1
        told = torch.tensor([count, -count, brings])
        self._reduce(told, dist.ReduceOp.MAX, group)
        most, least, brings = int(told[0]), -int(told[1]), int(told[2])
        if least < most:
            raise CollectiveError(f"Gloo: the processes bring {least} to {most} values")
        if brings >= 0:
            raise CollectiveError(f"Gloo: rank {brings} brings NaN")
        self._reduce(values, dist.ReduceOp.SUM, group)
        values /= dist.get_world_size(group)
        if values.isnan().any():
            raise CollectiveError("Gloo: infinities of both signs make NaN")

    def _reduce(self, values: torch.Tensor, operation: object, group: object) -> None:
        try:
            dist.all_reduce(values, operation, group=group)
        except RuntimeError as error:
            raise CollectiveError(f"Gloo: rank {self.rank} waits for another: {error}") from error


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
