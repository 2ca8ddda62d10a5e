"""MNIST-1D, made here: ten shapes of 12 values that are padded, stretched, moved, sheared and
hidden in noise, 40 values each (Greydanus and Kobak, arXiv 2011.14439; the recipe and its constants
are those of their package mnist1d, which is not needed)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

SHAPES = """
5 6 6.5 6.75 7 7 7 7 6.75 6.5 6 5
5 3 3 3.4 3.8 4.2 4.6 5 5.4 5.8 5 5
5 6 6.5 6.5 6 5.25 4.75 4 3.5 3.5 4 5
5 6 6.5 6.5 6 5 5 6 6.5 6.5 6 5
5 4.4 3.8 3.2 2.6 2.6 5 5 5 5 5 5
5 3 3 3 3 5 6 6.5 6.5 6 4.5 5
5 4 3.5 3.25 3 3 3 3 3.25 3.5 4 5
5 7 7 6.6 6.2 5.8 5.4 5 4.6 4.2 5 5
5 4 3.5 3.5 4 5 5 4 3.5 3.5 4 5
5 4 3.5 3.5 4 5 5 5 5 4.7 4.3 5
"""
CLASSES, VALUES = 10, 40
LEAST_PADDING, MOST_PADDING, MOST_MOVED = 36, 60, 48
SCALE, SHEAR, SMOOTH_NOISE, NOISE = 0.4, 0.75, 0.25, 0.02
# Of the noise's smoothing.
SIGMA, REACH = 2, 8
SAMPLES, TRAINING = 20_000, 0.8
SEED = 42


def shapes() -> np.ndarray:
    x = np.array([[float(v) for v in line.split()] for line in SHAPES.strip().splitlines()])
    x -= x.mean(1, keepdims=True)
    x /= x.std(1, keepdims=True)
    x -= x[:, :1]
    return x / 6


def stretched(x: np.ndarray, count: int) -> np.ndarray:
    return np.interp(np.linspace(0, 1, count), np.linspace(0, 1, len(x)), x)


def smoothed(x: np.ndarray) -> np.ndarray:
    at = np.arange(-REACH, REACH + 1)
    weights = np.exp(-0.5 * (at / SIGMA) ** 2)
    padded = np.pad(x, REACH, mode="symmetric")
    return np.convolve(padded, weights / weights.sum(), mode="valid")


def sample(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    padding = LEAST_PADDING + int(rng.random() * (MOST_PADDING - LEAST_PADDING + 1))
    x = stretched(np.concatenate([shape + 1e-8, np.zeros(padding)]), len(shape) + MOST_PADDING)
    x *= 1 + SCALE * (rng.random() - 0.5)
    x = np.roll(x, int(rng.integers(MOST_MOVED)))
    quiet = smoothed(SMOOTH_NOISE * rng.standard_normal(len(x)))
    x = np.where(x != 0, x, quiet) + NOISE * rng.standard_normal(len(x))
    x -= SHEAR * (rng.random() - 0.5) * np.linspace(-0.5, 0.5, len(x))
    return stretched(x, VALUES)


def make(path: Path) -> None:
    rng = np.random.default_rng(SEED)
    labels = rng.permutation(np.repeat(np.arange(CLASSES), SAMPLES // CLASSES))
    known = shapes()
    x = np.stack([sample(known[label], rng) for label in labels])
    x = (x - x.mean()) / x.std()
    cut = int(SAMPLES * TRAINING)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several workers may make it at once.
    part = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(part, x=x[:cut], y=labels[:cut], x_test=x[cut:], y_test=labels[cut:])
    part.rename(path)


def load(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training values and labels, then those of the test; made once, as `path`."""
    if not path.exists():
        make(path)
    with np.load(path) as data:
        x, x_test = (data[name].astype(np.float32) for name in ("x", "x_test"))
        return x, data["y"].astype(np.int64), x_test, data["y_test"].astype(np.int64)


def shards(labels: np.ndarray, count: int, how: str, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of each worker: `even`, or `sorted`, where 80 % of the rows are in the order of
    their labels, as those of a table that was written by key or by day."""
    if how == "even":
        return np.array_split(rng.permutation(len(labels)), count)
    order = np.argsort(labels + 1e-3 * rng.random(len(labels)), kind="stable")
    mixed = rng.permutation(len(labels))[: len(labels) // 5]
    order[mixed] = order[rng.permutation(mixed)]
    return np.array_split(order, count)
