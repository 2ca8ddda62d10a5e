"""One process that trains with torch, under torchrun:

    torch_process.py TRANSPORT DIRECTORY CASE...

With gloo, rank 2 has no library of Faro's. Writes the results to DIRECTORY/RANK.json."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path

import torch
from faro import torch_meeting
from faro.collective import Team
from faro.torch import CollectiveError, ModelAverager, RendezvousError

RANK = int(os.environ["RANK"])


class Kept(logging.Handler):
    """The lines of Faro's log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


LINES = Kept()
logging.getLogger("faro").addHandler(LINES)


def network() -> torch.nn.Module:
    """With buffers; another one in each process."""
    torch.manual_seed(RANK)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 5), torch.nn.BatchNorm1d(5), torch.nn.ReLU(), torch.nn.Linear(5, 3)
    )


def state(model: torch.nn.Module) -> dict[str, list[float]]:
    return {name: one.reshape(-1).tolist() for name, one in model.state_dict().items()}


def train(model, averager, steps: int) -> list[bool]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    averaged = []
    for _ in range(steps):
        inputs = torch.randn(8, 6) + RANK
        loss = torch.nn.functional.cross_entropy(model(inputs), torch.randint(0, 3, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averaged.append(averager.step())
    return averaged


def training(**words) -> dict:
    """A training from rank 0's model on; what each process had before the end, and at the end."""
    model = network()
    averager = ModelAverager(model, **words)
    begun = state(model)
    averaged = train(model, averager, 5)
    before = state(model)
    averager.finish()
    return {
        "transport": averager.transport,
        "averaged": averaged,
        "begun": begun,
        "before": before,
        "end": state(model),
        "log": [*LINES.lines],
    }


def refusal(model: torch.nn.Module, **words) -> str:
    try:
        ModelAverager(model, **words)
    except ValueError as error:
        return str(error)
    return "made"


def with_buffer(value: torch.Tensor, **words) -> torch.nn.Module:
    model = torch.nn.Linear(1, 1)
    model.register_buffer("mask", value, **words)
    return model


def errors() -> dict:
    """Models and arguments that are refused, at every process with one text."""

    def line(inputs: int, outputs: int, **words) -> torch.nn.Module:
        return torch.nn.Linear(inputs, outputs, **words)

    found = {}
    for name, model in (
        ("sizes", line(4, 1 + (RANK == 2))),
        ("shapes", line(8, 4, bias=False) if RANK == 3 else line(4, 8, bias=False)),
        ("more", torch.nn.Sequential(line(4, 4), *[line(4, 4)] * (RANK == 1))),
        ("type", line(4, 2).half() if RANK == 1 else line(4, 2)),
        ("mixed", line(4, 2).double() if RANK == 3 else line(4, 2)),
        ("device", line(4, 2, device="meta")),
        ("empty", torch.nn.ReLU()),
        ("no model", [line(4, 2)]),
        ("lazy", torch.nn.LazyLinear(2)),
        ("expanded", with_buffer(torch.ones(1).expand(3))),
        ("stride 0", with_buffer(torch.ones(4).as_strided((1, 4), (0, 1))) if RANK else line(4, 2)),
        ("sparse", with_buffer(torch.eye(3).to_sparse())),
    ):
        found[name] = refusal(model)
    with torch.inference_mode():
        found["inference"] = refusal(line(4, 2))
    for name, words in (
        ("mode", {"mode": "ring" if RANK == 1 else "grid"}),
        ("modes", {"mode": "full" if RANK == 2 else "dssync"}),
        ("every", {"every": "4"}),
        ("everies", {"every": 1 + RANK}),
        ("group", {"mode": "dssync", "group": 9}),
        ("seed", {"seed": 1.5}),
        ("timeout", {"timeout": 0 if RANK == 1 else 60}),
        ("flag", {"slow_apart": 1}),
        ("setting", {"settings": {"colour": "red"}}),
        ("size", {"settings": {"memory.limit": "64m"} if RANK == 3 else None}),
        ("port", {"settings": {"port": 99999}}),
        ("fabric", {"settings": {"fabric": "pigeon"}}),
    ):
        found[name] = refusal(line(4, 2), **words)
    return found


def team() -> dict:
    """Teams that are made before, as in a barrier stage."""

    def made() -> Team:
        return Team.join(gather, RANK)

    def gather(payload: bytes) -> list[bytes]:
        found = [b""] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(found, payload)
        return found

    found = {
        "every": refusal(network(), every=1 + (RANK == 2), team=made()),
        "shapes": refusal(torch.nn.Linear(4 + RANK, 8 - RANK), team=made()),
        "mode": refusal(network(), mode="full", team=made()),
    }
    model = network()
    averager = ModelAverager(model, team=made())
    train(model, averager, 2)
    averager.finish()
    return {**found, "end": state(model)["0.weight"]}


def failure(averager: ModelAverager) -> str:
    try:
        averager.step()
    except CollectiveError as error:
        return str(error)
    return "averaged"


def values() -> dict:
    """The largest numbers, tensors that the model replaces, and one that it adds."""
    lowest = torch.finfo(torch.float32).min
    # The second one is the smallest.
    model = with_buffer(torch.tensor([lowest, 1e-45 if RANK == 0 else 1.0]))
    model.register_buffer("cache", torch.ones(1 + RANK), persistent=False)
    with torch.no_grad():
        model.weight.fill_(0.1 + RANK)
    averager = ModelAverager(model)
    found = {"begun": [model.weight.item(), model.mask.tolist(), model.cache.sum().item()]}
    model.weight = torch.nn.Parameter(torch.full((1, 1), float(RANK)))
    averager.step()
    found["replaced"] = model.weight.item()
    found["lowest"] = model.mask[0].item() == lowest
    model.more = torch.nn.Parameter(torch.zeros(3))
    try:
        averager.step()
    except ValueError as error:
        found["added"] = str(error)
    found["then"] = failure(averager)
    return found


def apart() -> dict:
    """Rank 1 makes one average less, and then finishes."""
    model = network()
    averager = ModelAverager(model)
    averager.step()
    torch.nn.init.constant_(model[0].weight, float(RANK))
    if RANK != 1:
        found = failure(averager)
    else:
        try:
            averager.finish()
            found = "finished"
        except CollectiveError as error:
            found = str(error)
    return {"error": found, "kept": model[0].weight.unique().tolist() == [RANK]}


def nan() -> dict:
    """Rank 3 brings a NaN."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Linear(1, 1).double())
    averager = ModelAverager(model)
    with torch.no_grad():
        model[0].weight.fill_(RANK)
        model[1].weight.fill_(float("nan") if RANK == 3 else RANK)
    found = {"first": failure(averager), "second": failure(averager)}
    found["kept"] = model[0].weight.tolist() == [[RANK, RANK]]
    try:
        averager.finish()
    except CollectiveError as error:
        found["finish"] = str(error)
    return found


def late() -> str:
    """Rank 1 does not come."""
    torch_meeting.MEET_SECONDS = 2.0
    if RANK == 1:
        return "late"
    try:
        ModelAverager(network(), timeout=1.0)
    except RendezvousError as error:
        return str(error)
    return "made"


def stopped() -> str:
    """Rank 1 stops until the others have seen it."""
    averager = ModelAverager(network(), timeout=2.0)
    place = Path(sys.argv[2])
    if RANK == 1:
        (place / "pid").write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
        return "stopped"
    found = failure(averager)
    (place / f"seen.{RANK}").touch()
    if RANK == 0:
        while not all((place / f"seen.{rank}").exists() for rank in (0, 2, 3)):
            time.sleep(0.05)
        os.kill(int((place / "pid").read_text()), signal.SIGCONT)
    return found


def without_a_fallback() -> str:
    try:
        ModelAverager(network(), fallback=False)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "made"


CASES = {
    "exact": lambda: training(every=2),
    "dssync": lambda: training(mode="dssync", group=2, buffers="own"),
    "errors": errors,
    "refused": without_a_fallback,
    "team": team,
    "values": values,
    "apart": apart,
    "nan": nan,
    "late": late,
    "stopped": stopped,
}


def main() -> None:
    transport, directory, *cases = sys.argv[1:]
    # However late the others are.
    torch_meeting.LINGER_SECONDS = 60.0
    if transport == "gloo" and RANK == 2:
        os.environ["FARO_LIBRARY_PATH"] = "/nonexistent/libfaro_jni.so"
    if len(cases) > 1:
        torch.distributed.init_process_group("gloo")
    found = {}
    for case in cases:
        LINES.lines.clear()
        found[case] = CASES[case]()
    Path(directory, f"{RANK}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
