"""Writes the transport ladder's part of docs/benchmarks.md."""

from measure.spread import ratio

from .figures import (
    LARGE,
    NAMES,
    SMALL,
    TINY,
    cell_figure,
    cell_median,
    details,
    machine,
    number,
    table,
    times,
    with_spread,
)

KEYS = ("blocks_per_second", "mb_per_second", "cpu_us_per_block", "cpu_ms_per_mb")
SHOWN_CLIENTS = 8


def write(results):
    """Writes a chapter for each place, and compares a second place with the first."""
    runs = list(results["places"].values())
    parts = [
        "## Transport ladder",
        (
            "An owner process serves map outputs (Spark's data and index files) to a "
            "reader process of the same host. There are three sides:\n\n"
            "- *Netty*: Spark's own NettyBlockTransferService at both ends with its default "
            "settings. The owner finds a block as IndexShuffleBlockResolver does.\n"
            "- *Faro*: the FaroBlockStoreClient that Spark's fetch iterator calls, on a "
            "native endpoint with default limits.\n"
            "- *free*: no transport. The reader maps the owner's files. Its CPU time is the "
            "harness's own, which every other row contains too.\n\n"
            "All sides have the same requests (one reduce partition, up to 9.6 MB or 1000 "
            "blocks, 48 MB in flight in total), the same queue to the consuming threads, and "
            "the same consumer, which reads every byte of every block through its stream and "
            "releases the block. The sides take turns in every round. A figure is the median "
            "of the rounds, with the lowest and highest in parentheses. CPU is the sum of "
            "both processes. Every byte was compared once per shape and side, outside the "
            "timed part. Files are written back before the first run and read many times, so the "
            "page cache and the mappings of *free* are warm. Before the first cell every side "
            "runs until the JIT compiler has little left to do. A1 is the shape of "
            "Spark workload A1: 400 x 400 blocks of 200 bytes, 200 per request, each from another "
            "map output."
        ),
    ]
    for run in runs:
        parts += chapter(run)
    if len(runs) > 1:
        parts += beside(*runs[:2])
    return "\n\n".join(parts)


def chapter(results):
    cells, broken = results["cells"], results["broken"]
    faro = [side for side in results["sides"] if side.startswith("faro-") and side not in broken]
    where = results["file_system"]
    parts = [
        f"### Map outputs on {where}",
        "\n".join(
            [
                machine(
                    results["machine"], results["command"], results["seconds"], results["quick"]
                ),
                *[f"- {note}" for note in results["notes"]],
            ]
        ),
        f"#### Aims, {where}",
        aims(cells, faro),
        f"#### Where Faro is slower or uses more CPU, {where}",
        losses(cells, faro, broken),
        f"#### Figures, {where}",
        f"![Throughput and CPU by block size](benchmarks/ladder-{where}.svg)",
        f"With {_shown(cells)} clients, against Netty:",
        summary(cells, faro, _shown(cells)),
    ]
    for clients in sorted({cell["clients"] for cell in cells}):
        plural = "client" if clients == 1 else "clients"
        parts.append(
            details(
                f"All figures with {clients} {plural}, {where}",
                everything(cells, results["sides"], clients),
            )
        )
    if results.get("threads"):
        parts += [f"#### Where the CPU goes, by thread, {where}", threads(results["threads"])]
    return parts


def beside(first, second):
    """Compares the same cells of both runs, which differ in the file system."""
    clients = _shown(first["cells"])
    sides = [s for s in first["sides"] if s not in first["broken"] and s not in second["broken"]]
    found = {(c["shape"], c["clients"]): c for c in second["cells"]}
    names = first["file_system"], second["file_system"]
    rows = []
    for cell in first["cells"]:
        other = found.get((cell["shape"], cell["clients"]))
        if cell["clients"] != clients or other is None:
            continue
        for side in sides:
            row = [cell["shape"], NAMES[side]]
            for key in ("mb_per_second", "cpu_ms_per_mb"):
                here, there = (cell_median(c, side, key) for c in (cell, other))
                share = ratio(there, here)
                row += [number(here), number(there), "–" if share is None else f"{share:.2f}"]
            rows.append(row)
    head = ["block", "side"]
    for what in ("MB/s", "CPU ms/MB"):
        head += [f"{what}, {names[0]}", names[1], f"{names[1]} / {names[0]}"]
    return [f"### {names[1]} beside {names[0]}, {clients} clients", table(head, rows)]


def _shown(cells):
    there = sorted({cell["clients"] for cell in cells})
    return SHOWN_CLIENTS if SHOWN_CLIENTS in there else there[-1]


def summary(cells, faro, clients):
    head = ["block", "Netty MB/s"]
    for side in faro:
        head += [f"{NAMES[side]} MB/s", "x Netty", "CPU µs/block", "CPU ms/MB"]
    head += ["Netty CPU µs/block", "Netty CPU ms/MB", "free CPU µs/block"]
    rows = []
    for cell in cells:
        if cell["clients"] != clients:
            continue
        netty = cell_median(cell, "netty", "mb_per_second")
        row = [cell["shape"], number(netty)]
        for side in faro:
            ours = cell_median(cell, side, "mb_per_second")
            row += [
                number(ours),
                times(ratio(ours, netty)),
                number(cell_median(cell, side, "cpu_us_per_block")),
                number(cell_median(cell, side, "cpu_ms_per_mb")),
            ]
        row += [
            number(cell_median(cell, "netty", "cpu_us_per_block")),
            number(cell_median(cell, "netty", "cpu_ms_per_mb")),
            number(cell_median(cell, "free", "cpu_us_per_block")),
        ]
        rows.append(row)
    return table(head, rows)


def everything(cells, sides, clients):
    rows = []
    for cell in cells:
        if cell["clients"] == clients:
            rows += [
                [
                    cell["shape"],
                    NAMES[side],
                    *(with_spread(cell_figure(cell, side, k)) for k in KEYS),
                ]
                for side in sides
            ]
    return table(["block", "side", "blocks/s", "MB/s", "CPU µs/block", "CPU ms/MB"], rows)


def threads(measured):
    rows = []
    for one in measured:
        for process, by_thread in one["threads"].items():
            for name, spent in list(by_thread.items())[:6]:
                if spent["us_per_block"] >= 0.02:
                    rows.append(
                        [
                            one["shape"],
                            NAMES[one["side"]],
                            process,
                            name,
                            number(spent["us_per_block"]),
                            number(spent["ms_per_mb"]),
                        ]
                    )
    return (
        "One longer run per side, with 8 clients. The threads `bench-client` consume blocks, "
        "`faro-io` read files in the owner process, and `faro-completion` passes blocks to "
        "Java's listeners.\n\n"
        + table(["block", "side", "process", "thread", "µs/block", "ms/MB"], rows)
    )


AIMS = [
    (
        "at least 10x Netty's blocks/s at 4 KB and less",
        "blocks_per_second",
        10.0,
        lambda size: size <= SMALL,
        True,
    ),
    (
        "at least 2x Netty's bytes/s at 64 KB and more",
        "mb_per_second",
        2.0,
        lambda size: size >= LARGE,
        True,
    ),
    (
        "at most 2 µs CPU of both sides per tiny block (1 KB and less)",
        "cpu_us_per_block",
        2.0,
        lambda size: size <= TINY,
        False,
    ),
    (
        "at most 0.3 ms CPU of both sides per MB at 64 KB and more",
        "cpu_ms_per_mb",
        0.3,
        lambda size: size >= LARGE,
        False,
    ),
]


def aims(cells, faro):
    rows = []
    for text, key, bound, applies, against_netty in AIMS:
        for side in faro:
            found = []
            for cell in cells:
                ours = cell_median(cell, side, key)
                if not applies(cell["block_bytes"]) or ours is None:
                    continue
                value = ratio(ours, cell_median(cell, "netty", key)) if against_netty else ours
                if value is not None:
                    found.append((value, f"{cell['shape']}, {cell['clients']} cl."))
            if found:
                rows.append([text, NAMES[side], *_judged(found, bound, against_netty)])
    return table(["aim", "side", "worst cell", "median cell", "cells that meet it", "met"], rows)


def _judged(found, bound, more_is_better):
    found = sorted(found, reverse=not more_is_better)
    good = sum(v >= bound if more_is_better else v <= bound for v, _ in found)
    shown = times if more_is_better else number
    worst, where = found[0]
    verdict = "yes" if good == len(found) else "**no**" if good == 0 else "**in part**"
    return [
        f"{shown(worst)} ({where})",
        shown(found[len(found) // 2][0]),
        f"{good} of {len(found)}",
        verdict,
    ]


def losses(cells, faro, broken):
    said = [f"- **{NAMES[side]} did not finish: {why}**" for side, why in broken.items()]
    for side in faro:
        slower, dearer = [], []
        for cell in cells:
            where = f"{cell['shape']} with {cell['clients']}"
            speed = ratio(
                cell_median(cell, side, "mb_per_second"),
                cell_median(cell, "netty", "mb_per_second"),
            )
            cost = ratio(
                cell_median(cell, side, "cpu_ms_per_mb"),
                cell_median(cell, "netty", "cpu_ms_per_mb"),
            )
            if speed is not None and speed < 1:
                slower.append(f"{where} ({speed:.2f}x)")
            if cost is not None and cost > 1:
                dearer.append(f"{where} ({cost:.2f}x)")
        said.append(
            f"- {NAMES[side]} "
            + (
                "moves fewer bytes per second than Netty with these blocks and clients: "
                f"{', '.join(slower)}."
                if slower
                else "is not slower than Netty in any cell."
            )
        )
        said.append(
            f"- {NAMES[side]} "
            + (
                f"uses more CPU than Netty with: {', '.join(dearer)}."
                if dearer
                else "does not use more CPU than Netty in any cell."
            )
        )
    return "\n".join(said)
