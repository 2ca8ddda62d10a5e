"""One of four processes that train a model of a million weights: `worker.py DATA PLACE WORDS`, with
the variables of a launcher. WORDS are those of ModelAverager, as JSON.

Writes each step's time to PLACE/RANK.steps. It ends after the step that PLACE/stop names, which the
suite writes when the time is over; the last line is the result as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import mnist1d
import numpy as np
import torch
from faro.torch import ModelAverager

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH, BATCH, RATE = 960, 16, 0.05


def network() -> torch.nn.Module:
    """969,610 weights, of 3.9 MB."""
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(mnist1d.VALUES, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, mnist1d.CLASSES),
    )


def main() -> None:
    data, place, words = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    x, y, x_test, y_test = mnist1d.load(data)
    rng = np.random.default_rng(RANK)
    part = mnist1d.shards(y, RANKS, "sorted", np.random.default_rng(7))[RANK]
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    if words.pop("racks", False):
        words["rack"] = f"rack-{2 * RANK // RANKS}"
    averager = ModelAverager(model, **words)
    stop, done = place / "stop", 0
    begun = time.time()
    with (place / f"{RANK}.steps").open("w", buffering=1) as steps:
        while not stop.exists() or done < int(stop.read_text()):
            pick = part[rng.integers(0, len(part), BATCH)]
            scores = model(torch.from_numpy(x[pick]))
            loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(y[pick]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averager.step()
            done += 1
            steps.write(f"{time.time()}\n")
    ended = time.time()
    averager.finish()
    with torch.no_grad():
        right = model(torch.from_numpy(x_test)).argmax(1) == torch.from_numpy(y_test)
    result = {
        "transport": averager.transport,
        "begun": begun,
        "ended": ended,
        "steps": done,
        "accuracy": float(right.float().mean()),
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
