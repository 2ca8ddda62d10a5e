#!/usr/bin/env python3
"""A small network of PyTorch on the digits, in a PySpark barrier stage: each task trains on its own
rows, and faro.torch averages the models over the stage's team.

  docs/examples/sgd/export_data.py DATA
  spark-submit --master 'local-cluster[2,2,1024]' --jars dist/faro-spark.jar \\
    --conf spark.shuffle.manager=io.faro.spark.FaroShuffleManager \\
    --py-files docs/examples/sgd/faro_collective.py docs/examples/sgd/sgd_torch.py DATA dssync

The workers need torch and the wheel faro-spark. Under torchrun the same training takes one line
less: `ModelAverager(model)` without a team.
"""

import random
import sys
from pathlib import Path

import faro_collective

TASKS, STEPS, EVERY, BATCH, RATE = 4, 300, 2, 16, 0.1
PIXELS, HIDDEN, CLASSES, BRIGHTEST = 64, 64, 10, 16


def read(path):
    with Path(path).open(encoding="ascii") as lines:
        rows = [[float(field) for field in line.split(",")] for line in lines if line.strip()]
    random.Random(1).shuffle(rows)
    return rows


def tensors(rows):
    import torch  # noqa: PLC0415  (the driver may not have it)

    data = torch.tensor(rows)
    return data[:, :-1] / BRIGHTEST, data[:, -1].long()


def train(team, records):
    import torch  # noqa: PLC0415
    from faro.torch import ModelAverager  # noqa: PLC0415

    inputs, targets = tensors(list(records))
    model = torch.nn.Sequential(
        torch.nn.Linear(PIXELS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    averager = ModelAverager(model, every=EVERY, team=team)
    for _ in range(STEPS):
        pick = torch.randint(0, len(inputs), (BATCH,))
        loss = torch.nn.functional.cross_entropy(model(inputs[pick]), targets[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averager.step()
    averager.finish()
    yield averager.rank, [one.tolist() for one in model.state_dict().values()]


def right(state, rows):
    """How many rows the model classifies as they are, without torch."""
    first, first_bias, second, second_bias = state
    count = 0
    for row in rows:
        pixels = [pixel / BRIGHTEST for pixel in row[:-1]]
        hidden = [
            max(0.0, bias + sum(w * x for w, x in zip(weights, pixels)))
            for weights, bias in zip(first, first_bias)
        ]
        scores = [
            bias + sum(w * x for w, x in zip(weights, hidden))
            for weights, bias in zip(second, second_bias)
        ]
        count += scores.index(max(scores)) == int(row[-1])
    return count


def main():
    from pyspark import SparkContext  # noqa: PLC0415

    data, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "grid"
    context = SparkContext(appName="faro-sgd-torch")
    rows = read(f"{data}/digits.csv")
    test, training = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    results = faro_collective.map_partitions(
        context.parallelize(training, TASKS), train, mode=mode
    ).collect()
    models = {repr(state) for _, state in results}
    for rank, state in sorted(results):
        print(
            f"PYTHON mode={mode} rank={rank} of={len(results)} models={len(models)} "
            f"accuracy={right(state, test) / len(test):.4f}"
        )
    context.stop()


if __name__ == "__main__":
    main()
