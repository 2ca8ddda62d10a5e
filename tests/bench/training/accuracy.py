"""Sixteen workers in one process: real SGD on MNIST-1D, each way of averaging as it is defined.

usage: accuracy.py DATA SHARDS SEED STEPS WAY...      a line of JSON for each way
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import mnist1d
import numpy as np

WORKERS, RACKS, BATCH, RATE = 16, 2, 16, 0.1
IN_RACK = WORKERS // RACKS
SIZES = (mnist1d.VALUES, 256, 128, mnist1d.CLASSES)
# Where the rate falls to a tenth.
COOLING = 0.7
# As native/exchange does it: groups by rack, and those without slow members, are of all workers in
# each round of this number.
MIXED_EVERY = 8
# So many workers are slow, and are others after so many steps.
SLOW, SLOW_STEPS = 2, 50


def cut(order: np.ndarray, size: int) -> list[np.ndarray]:
    """Groups of at least `size`, whose sizes differ by one at most."""
    return np.array_split(order, len(order) // size)


def anywhere(size: int, rng: np.random.Generator) -> list[np.ndarray]:
    return cut(rng.permutation(WORKERS), size)


def in_racks(size: int, rng: np.random.Generator) -> list[np.ndarray]:
    racks = [at + rng.permutation(IN_RACK) for at in range(0, WORKERS, IN_RACK)]
    return [group for rack in racks for group in cut(rack, size)]


def without_slow(size: int, step: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Slow members go on alone, so that nobody waits for them."""
    slow = np.random.default_rng(step // SLOW_STEPS).permutation(WORKERS)[:SLOW]
    return cut(rng.permutation(np.setdiff1d(np.arange(WORKERS), slow)), size)


EVERYONE = [np.arange(WORKERS)]
HALVES = [np.arange(at, at + IN_RACK) for at in range(0, WORKERS, IN_RACK)]


def every(step: int, count: int) -> bool:
    return step % count == count - 1


# The groups that average after a step; none: nobody does.
WAYS = {
    "ring": lambda _step, _rng: EVERYONE,
    "hierarchical, all every 8th": lambda step, _rng: EVERYONE if every(step, 8) else HALVES,
    "local SGD 4": lambda step, _rng: EVERYONE if every(step, 4) else [],
    "local SGD 16": lambda step, _rng: EVERYONE if every(step, 16) else [],
    "DS-Sync, pairs": lambda _step, rng: anywhere(2, rng),
    "DS-Sync, fours": lambda _step, rng: anywhere(4, rng),
    "DS-Sync, fours by rack": lambda step, rng: (
        anywhere(4, rng) if every(step, MIXED_EVERY) else in_racks(4, rng)
    ),
    "DS-Sync, fours, slow apart": lambda step, rng: (
        anywhere(4, rng) if every(step, MIXED_EVERY) else without_slow(4, step, rng)
    ),
}


def accuracy(x, y, weights, biases) -> float:
    for layer, (weight, bias) in enumerate(zip(weights, biases)):
        x = x @ weight + bias
        x = np.maximum(x, 0) if layer < len(weights) - 1 else x
    return float((x.argmax(1) == y).mean())


def train(data, how: str, seed: int, steps: int, way: str) -> float:
    """The accuracy of the exact mean of all workers' models, on rows that none has seen."""
    x, y, x_test, y_test = data
    rng, drawing = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    parts = mnist1d.shards(y, WORKERS, how, rng)
    layers = list(zip(SIZES, SIZES[1:]))
    first = [rng.standard_normal(shape) * np.sqrt(2 / shape[0]) for shape in layers]
    weights = [np.repeat(one[None].astype(np.float32), WORKERS, 0) for one in first]
    biases = [np.zeros((WORKERS, 1, out), np.float32) for _, out in layers]
    workers, rows = np.arange(WORKERS)[:, None], np.arange(BATCH)[None]
    for step in range(steps):
        pick = np.stack([part[rng.integers(0, len(part), BATCH)] for part in parts])
        rate = np.float32(RATE if step < COOLING * steps else RATE / 10)
        inputs, labels = [x[pick]], y[pick]
        for weight, bias in zip(weights[:-1], biases[:-1]):
            inputs.append(np.maximum(inputs[-1] @ weight + bias, 0))
        scores = inputs[-1] @ weights[-1] + biases[-1]
        chances = np.exp(scores - scores.max(2, keepdims=True))
        chances /= chances.sum(2, keepdims=True)
        chances[workers, rows, labels] -= 1
        error = chances / np.float32(BATCH)
        for layer in reversed(range(len(weights))):
            before = error @ weights[layer].transpose(0, 2, 1) if layer else None
            weights[layer] -= rate * (inputs[layer].transpose(0, 2, 1) @ error)
            biases[layer] -= rate * error.sum(1, keepdims=True)
            error = before * (inputs[layer] > 0) if layer else None
        for group in WAYS[way](step, drawing):
            for values in (*weights, *biases):
                values[group] = values[group].mean(0)
    return accuracy(x_test, y_test, [one.mean(0) for one in weights], [b.mean(0) for b in biases])


def main() -> None:
    path, how, seed, steps, *ways = sys.argv[1:]
    data = mnist1d.load(Path(path))
    for way in ways or WAYS:
        begun = time.monotonic()
        found = train(data, how, int(seed), int(steps), way)
        seconds = time.monotonic() - begun
        print(json.dumps({"way": way, "accuracy": found, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
