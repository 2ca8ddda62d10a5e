"""The pictures of docs/benchmarks.md, from the tables that are stored beside it."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from . import style, tables

# side -> colour, marker: of the transports in the ladder, of the sides of the Spark workloads.
SIDES = {
    "Netty": (style.VERMILION, "^"),
    "stock Spark": (style.VERMILION, "^"),
    "Faro tcp": (style.BLUE, "s"),
    "Faro shm": (style.GREEN, "o"),
    "Faro, Spark's reader": (style.BLUE, "s"),
    "Faro, without row blocks": (style.SKY, "v"),
    "Faro": (style.GREEN, "o"),
    "free": (style.GREY, "D"),
    "Comet": (style.ORANGE, "v"),
    "Faro behind Comet": (style.BLUE, "s"),
    "Celeborn": (style.GREY, "D"),
    "Celeborn, tuned": (style.SKY, "D"),
    "Uniffle": (style.INK, "D"),
    "stock Spark, second heat": (style.PALE_VERMILION, "^"),
    "Faro, second heat": (style.PALE_GREEN, "o"),
}
# column -> title of the panel, level that is aimed at
LADDER = {
    "blocks/s": ("Blocks per second", None),
    "MB/s": ("MB per second", None),
    "CPU µs/block": ("CPU of both processes, µs per block", (2.0, "aim for 1 KB and less")),
    "CPU ms/MB": ("CPU of both processes, ms per MB", (0.3, "aim for 64 KB and more")),
}
SPARK = {
    "job s": "Job, s",
    "reduce stage s": "Reduce stage, s",
    "executors' CPU s": "CPU of both executors, s",
}
WORKLOADS = {
    "A1": "tiny\nblocks",
    "B1": "wide\nrows",
    "B2": "narrow\nrows",
    "J": "join",
    "S": "sort",
}
# Workload A1 has blocks of 200 bytes.
BYTES_OF_A1 = 200
UNITS = {"KB": 1 << 10, "MB": 1 << 20}


def ladder(document: str, path: Path, where: str) -> None:
    """`where`: the file system that the map outputs are on."""
    clients, rows = clients_shown(document, where)
    blocks = list(dict.fromkeys(row["block"] for row in rows))
    figure, panels = pyplot.subplots(2, 2, figsize=(10.5, 7.6))
    for axes, (column, (title, aim)) in zip(panels.flat, LADDER.items()):
        for side in dict.fromkeys(row["side"] for row in rows):
            found = {
                block_bytes(row["block"]): tables.measured(row[column])
                for row in rows
                if row["side"] == side
            }
            line(axes, side, {size: value for size, value in found.items() if value})
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        if aim:
            level, words = aim
            axes.axhline(level, color=style.INK, linewidth=1, linestyle=(0, (5, 4)))
            axes.annotate(
                f"{words}: {level:g}",
                (1, level),
                xycoords=("axes fraction", "data"),
                xytext=(0, -3),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=9,
            )
        axes.set_title(title)
        axes.set_xlabel("size of a block")
        labels = [f"{BYTES_OF_A1} B\n(A1)" if block == "A1" else block for block in blocks]
        style.ticks_at(axes, [block_bytes(block) for block in blocks], labels)
        axes.tick_params(axis="x", labelsize=9)
        style.shorten(axes)
    figure.suptitle(
        f"Faro and Spark's own transport, {clients} clients, by size of the blocks, {where}"
    )
    lines, names = panels.flat[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names))
    style.save(figure, path)


def clients_shown(document: str, where: str) -> tuple[int, list[dict[str, str]]]:
    """Eight clients where the page has them, otherwise the most."""
    heads = re.findall(rf"All figures with (\d+) clients?, {where}\b", document)
    there = [int(n) for n in heads]
    clients = 8 if 8 in there else max(there)
    plural = "client" if clients == 1 else "clients"
    return clients, tables.after(document, f"All figures with {clients} {plural}, {where}")


def block_bytes(name: str) -> int:
    """`4 KB` in bytes."""
    if name == "A1":
        return BYTES_OF_A1
    number, unit = name.split()
    return int(number) * UNITS[unit]


def line(axes: Axes, side: str, points: dict[int, tables.Measured]) -> None:
    colour, marker = SIDES[side]
    middles = [value.middle for value in points.values()]
    spread = spread_of(list(points.values()))
    axes.errorbar(list(points), middles, spread, color=colour, marker=marker, capsize=2, label=side)


def spread_of(values: list[tables.Measured]) -> list[list[float]]:
    """How far least and most are from the median, as error bars want it."""
    return [
        [value.middle - value.least for value in values],
        [value.most - value.middle for value in values],
    ]


def workloads(document: str, path: Path, columns: dict[str, str], title: str) -> None:
    """Bars from the table behind the picture's own place in the page; a panel for each column."""
    rows = tables.after(document, f"(benchmarks/{path.name})")
    names = list(dict.fromkeys(row["workload"] for row in rows))
    sides = list(dict.fromkeys(row["side"] for row in rows))
    figure, panels = pyplot.subplots(1, len(columns), figsize=(10.5, 4.2))
    width = 0.8 / len(sides)
    for axes, (column, head) in zip(panels, columns.items()):
        for number, side in enumerate(sides):
            found = {
                names.index(row["workload"]): tables.measured(row[column])
                for row in rows
                if row["side"] == side
            }
            there = {at: value for at, value in found.items() if value}
            axes.bar(
                [at + (number - (len(sides) - 1) / 2) * width for at in there],
                [value.middle for value in there.values()],
                width * 0.92,
                yerr=spread_of(list(there.values())),
                color=SIDES[side][0],
                error_kw={"ecolor": style.INK, "elinewidth": 1, "capsize": 2},
                label=side,
            )
        axes.set_title(head)
        axes.grid(visible=False, axis="x")
        shown = [WORKLOADS.get(name, name) for name in names]
        style.ticks_at(axes, list(range(len(names))), shown)
    figure.suptitle(f"{title}: medians of the runs, with their least and most")
    bars, labels = panels[0].get_legend_handles_labels()
    figure.legend(bars, labels, loc="outside lower center", ncols=len(labels))
    style.save(figure, path)


def peers(document: str, path: Path) -> None:
    """A panel for each workload, a named bar for each side, also for one that was not measured."""
    rows = tables.after(document, f"(benchmarks/{path.name})")
    workloads_there = list(dict.fromkeys(row["workload"] for row in rows))
    sides = list(dict.fromkeys(row["side"] for row in rows))
    figure, panels = pyplot.subplots(3, 2, figsize=(10.5, 9))
    for axes, workload in zip(panels.flat, workloads_there):
        found = {
            row["side"]: tables.measured(row["job s"])
            for row in rows
            if row["workload"] == workload
        }
        for place, side in enumerate(sides):
            value = found.get(side)
            if value is None:
                axes.annotate(" not measured", (0, place), va="center", fontsize=9)
                continue
            errors = {"ecolor": style.INK, "elinewidth": 1, "capsize": 2}
            spread = spread_of([value])
            axes.barh(
                place,
                value.middle,
                0.8,
                xerr=spread,
                color=SIDES[side][0],
                error_kw=errors,
                label=side,
            )
        axes.set_yticks(range(len(sides)), sides)
        axes.set_ylim(len(sides) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_title(f"{workload}, job s")
    for axes in panels.flat[len(workloads_there) :]:
        axes.set_visible(False)
    figure.suptitle("Beside other shuffles: medians of the runs, with their least and most")
    style.save(figure, path)


def draw(document: str, folder: Path) -> None:
    """The pictures of the sections that are stored."""
    for where in re.findall(r"\(benchmarks/ladder-(\w+)\.svg\)", document):
        ladder(document, folder / f"ladder-{where}.svg", where)
    if "\n## Spark workloads\n" in "\n" + document:
        workloads(document, folder / "spark.svg", SPARK, "Spark workloads")
    if "\n## Beside other shuffles\n" in "\n" + document:
        peers(document, folder / "peers.svg")
