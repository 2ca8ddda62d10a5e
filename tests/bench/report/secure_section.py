"""Writes the part of docs/benchmarks with authentication and encryption on, for every side."""

from measure.spread import ratio

from . import spark_section
from .figures import (
    LARGE,
    NAMES,
    SMALL,
    cell_figure,
    cell_median,
    machine,
    table,
    times,
    with_spread,
)

FARO = "faro-sealed"
CIPHERS = ("netty-ctr", "netty-gcm")
KEYS = ("blocks_per_second", "mb_per_second", "cpu_us_per_block", "cpu_ms_per_mb")


def write(results):
    # The workloads are missing if their run was broken off.
    cells, spark = results["cells"], results.get("spark", {"seconds": 0, "workloads": {}})
    workloads = dict(sorted(spark["workloads"].items()))
    sides = [side for side in results["sides"] if side not in results["broken"]]
    return "\n\n".join(
        [
            "## With authentication and encryption",
            (
                "The transport ladder and three of the Spark workloads with `spark.authenticate` "
                "and `spark.network.crypto.enabled`, at both sides. *Netty, AES-CTR* is Spark's "
                "default cipher, which does not authenticate what it encrypts; *Netty, AES-GCM* "
                "is `spark.network.crypto.cipher=AES/GCM/NoPadding`. *Faro tcp, sealed* is "
                "AES-256-GCM. *Faro tcp* and *Netty* are in the clear, for comparison. How it is "
                "measured: as in the sections above. Between executors of one host Faro uses "
                "shared memory, whose bytes are not encrypted (docs/user/security.md); so the "
                "workloads show Faro on TCP too."
            ),
            machine(
                results["machine"],
                results["command"],
                results["seconds"] + spark["seconds"],
                results["quick"],
            ),
            table(["aim", "worst cell", "cells that meet it", "met"], aims(cells)),
            table(
                ["block", "side", "blocks/s", "MB/s", "CPU µs/block", "CPU ms/MB"],
                [
                    [
                        cell["shape"],
                        NAMES[side],
                        *(with_spread(cell_figure(cell, side, key)) for key in KEYS),
                    ]
                    for cell in cells
                    for side in sides
                ],
            ),
            *workload_table(workloads),
            "\n".join(
                f"- **{side} did not finish: {why}**" for side, why in results["broken"].items()
            ),
        ]
    ).rstrip()


def workload_table(workloads):
    if not workloads:
        return ["The Spark workloads were not measured in this run."]
    return [table(spark_section.HEAD, spark_section.rows(workloads))]


def aims(cells):
    """Returns rows that compare Faro with the faster cipher of Spark, and its CPU with Faro
    unencrypted."""
    rows = []
    for text, key, bound, applies in (
        ("at least 10x Netty at 4 KB and less", "blocks_per_second", 10, lambda s: s <= SMALL),
        ("at least 3x Netty at 64 KB and more", "mb_per_second", 3, lambda s: s >= LARGE),
    ):
        found = []
        for cell in cells:
            ours = cell_median(cell, FARO, key)
            theirs = [cell_median(cell, side, key) for side in CIPHERS]
            theirs = [value for value in theirs if value is not None]
            if ours is not None and theirs and applies(cell["block_bytes"]):
                found.append((ratio(ours, max(theirs)), cell["shape"]))
        rows += judged(text, found, bound, at_least=True)
    found = []
    for cell in cells:
        ours, clear = (cell_median(cell, side, "cpu_ms_per_mb") for side in (FARO, "faro-tcp"))
        if ours is not None and clear is not None:
            found.append((ratio(ours, clear), cell["shape"]))
    text = "at most 1.5x the CPU per MB of Faro in the clear"
    return rows + judged(text, found, 1.5, at_least=False)


def judged(text, found, bound, at_least):
    if not found:
        return []
    good = sum(value >= bound if at_least else value <= bound for value, _ in found)
    worst, where = min(found) if at_least else max(found)
    verdict = "yes" if good == len(found) else "**no**" if good == 0 else "**in part**"
    return [[text, f"{times(worst)} ({where})", f"{good} of {len(found)}", verdict]]
