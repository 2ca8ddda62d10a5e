"""The transport ladder over links of a limited rate: Netty and Faro over TCP, 8 clients."""

from __future__ import annotations

import json
import time
from pathlib import Path

import parts
import suite
from measure import ladder, links, machine, shapes, spread
from report.figures import NAMES, table, with_spread
from report.figures import machine as of_machine

ROOT = Path(__file__).resolve().parents[3]
SIDES = ["netty", "faro-tcp"]
SHAPES = ("1 KB", "16 KB", "64 KB", "1 MB")
CLIENTS = 8
ROUNDS, SECONDS = 3, 1.0
QUICK_ROUNDS, QUICK_SECONDS = 1, 0.2
FIGURES = [("MB/s", "mb_per_second"), ("CPU ms per MB of both", "cpu_ms_per_mb")]


def measure(place: parts.Place, gigabits: float) -> None:
    """Stores the figures by block size and side in place.target. `links.Unavailable`: no such
    links are here."""
    facts = {**machine.describe(place.home.name, ROOT), "revision": parts.product_revision()}
    started, others = time.monotonic(), machine.OthersWatch()
    quick = place.divisor != 1
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    chosen = [shape for shape in shapes.ALL if shape.name in SHAPES]
    with links.linked(gigabits) as (link, speed):
        running = ladder.Ladder(
            *(place.home, place.faro_jar, chosen, SIDES, place.target, place.say), link=link
        )
        try:
            cells, broken = ladder.measure(
                *(running, chosen, [CLIENTS], rounds, seconds),
                lambda done, total, cell, _: place.say(
                    f"{gigabits:g} Gbit/s, ladder {done}/{total}: {cell['shape']}"
                ),
            )
        finally:
            running.close()
    results = {
        "machine": {**facts, "others": others.share()},
        "seconds": time.monotonic() - started,
        "command": suite.command("scale"),
        "quick": quick,
        "gigabits": gigabits,
        "one_connection": speed,
        "cells": cells,
        "broken": broken,
    }
    path = place.target / f"ladder-over-{gigabits:g}.json"
    path.write_text(json.dumps(results, indent=1))


def stored(target: Path) -> list[dict]:
    found = [json.loads(path.read_text()) for path in target.glob("ladder-over-*.json")]
    return sorted(found, key=lambda run: run["gigabits"])


def write(runs: list[dict]) -> str:
    text = [
        "## Transport ladder by kind of link",
        (
            "The ladder of the first section with the owner and the reader of the blocks in "
            f"namespaces that a link joins, as in the section before; {CLIENTS} clients, files on "
            "tmpfs, medians with the lowest and highest round. MB/s are of blocks: 1 Gbit/s is "
            "125 MB/s with all headers."
        ),
    ]
    for run in runs:
        text.append(of_machine(run["machine"], run["command"], run["seconds"], run["quick"]))
        text.append(f"One TCP connection got {run['one_connection']:.2f} Gbit/s.")
        text += [f"- **{NAMES[side]}: {why}**" for side, why in run["broken"].items()]
        text.append(_table(run))
    return "\n\n".join(text)


def _table(run: dict) -> str:
    head = [f"{run['gigabits']:g} Gbit/s, blocks of"]
    head += [f"{NAMES[side]}: {label}" for label, _ in FIGURES for side in SIDES]
    head += [f"Faro / Netty: {label}" for label, _ in FIGURES]
    rows = []
    for cell in run["cells"]:
        found = [[spread.of(cell["sides"][side], key) for side in SIDES] for _, key in FIGURES]
        ratios = [spread.ratio(ours and ours[0], theirs and theirs[0]) for theirs, ours in found]
        row = [cell["shape"], *(with_spread(one) for pair in found for one in pair)]
        rows.append([*row, *("–" if r is None else f"{r:.2f}" for r in ratios)])
    return table(head, rows)
