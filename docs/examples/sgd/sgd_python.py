#!/usr/bin/env python3
"""Logistic regression on the breast-cancer data in a PySpark barrier stage: a step on each task's
own rows, then a round of Faro's collective. Needs neither numpy nor anything else but PySpark.

  docs/examples/sgd/export_data.py DATA
  spark-submit --master 'local-cluster[2,2,1024]' --jars dist/faro-spark.jar \\
    --conf spark.shuffle.manager=io.faro.spark.FaroShuffleManager \\
    --py-files docs/examples/sgd/faro_collective.py docs/examples/sgd/sgd_python.py DATA dssync
"""

import array
import math
import random
import sys
import time
from pathlib import Path

import faro_collective

TASKS, ROUNDS, BATCH, RATE = 4, 150, 16, 0.1


def read(path):
    with Path(path).open(encoding="ascii") as lines:
        rows = [[float(field) for field in line.split(",")] for line in lines if line.strip()]
    random.Random(1).shuffle(rows)
    for i in range(len(rows[0]) - 1):
        column = [row[i] for row in rows]
        mean = sum(column) / len(column)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in column) / len(column)) or 1.0
        for row in rows:
            row[i] = (row[i] - mean) / deviation
    return rows


def chance(weights, row):
    score = weights[-1] + sum(w * x for w, x in zip(weights, row[:-1]))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


def train(team, records):
    rows = list(records)
    pick = random.Random(team.rank)
    weights = array.array("d", [0.0] * len(rows[0]))
    started = time.monotonic()
    for _ in range(ROUNDS):
        gradient = [0.0] * len(weights)
        for row in pick.choices(rows, k=BATCH):
            error = chance(weights, row) - row[-1]
            for i, x in enumerate(row[:-1]):
                gradient[i] += error * x
            gradient[-1] += error
        for i, g in enumerate(gradient):
            weights[i] -= RATE * g / BATCH
        team.mean(weights)
    # With dssync the tasks still differ a little.
    team.mean_of_all(weights)
    yield team.rank, time.monotonic() - started, list(weights)


def main():
    from pyspark import SparkContext  # noqa: PLC0415  (only the driver has it on its path)

    data, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "grid"
    context = SparkContext(appName="faro-sgd-python")
    rows = read(f"{data}/breast_cancer.csv")
    test, training = rows[: len(rows) // 5], rows[len(rows) // 5 :]
    results = faro_collective.map_partitions(
        context.parallelize(training, TASKS), train, mode=mode, slow_apart=mode == "dssync"
    ).collect()
    for rank, seconds, weights in sorted(results):
        right = sum((chance(weights, row) > 0.5) == (row[-1] > 0.5) for row in test)
        print(
            f"PYTHON mode={mode} rank={rank} of={len(results)} accuracy={right / len(test):.4f} "
            f"seconds={seconds:.2f}"
        )
    context.stop()


if __name__ == "__main__":
    main()
