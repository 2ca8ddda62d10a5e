"""One process that trains with torch, under torchrun:

    torch_process.py TRANSPORT DIRECTORY CASE...

With gloo, rank 2 has no library of Faro's. Writes the results to DIRECTORY/RANK.json."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import torch
from faro.torch import ModelAverager

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


def errors() -> dict:
    """Models that are refused, at every process with one text."""
    found = {}
    wider = 1 + (RANK == 2)
    for name, model in (
        ("sizes", torch.nn.Linear(4, wider)),
        ("type", torch.nn.Linear(4, 2).half() if RANK == 1 else torch.nn.Linear(4, 2)),
        ("mixed", torch.nn.Linear(4, 2).double() if RANK == 3 else torch.nn.Linear(4, 2)),
        ("device", torch.nn.Linear(4, 2, device="meta")),
        ("empty", torch.nn.ReLU()),
    ):
        try:
            ModelAverager(model)
        except ValueError as error:
            found[name] = str(error)
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
}


def main() -> None:
    transport, directory, *cases = sys.argv[1:]
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
