"""Draws the plots of the documents again; tests/plots/draw starts this with the Python that has
matplotlib. docs/design/scaling/plane.svg is an illustration, and has no figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from . import style, tables

DOCS = Path(__file__).resolve().parents[2] / "docs"
# The colour and marker of a line or of bars.
LOOKS = {
    "Netty": (style.VERMILION, "^"),
    "stock Spark": (style.VERMILION, "^"),
    "Faro tcp": (style.BLUE, "s"),
    "Faro tcp, its readers": (style.ORANGE, "v"),
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
    "1 reader each": (style.GREY, "D"),
    "8 readers each": (style.BLUE, "s"),
    "32 readers each": (style.GREEN, "o"),
    "client": (style.BLUE, "s"),
    "server": (style.VERMILION, "^"),
    "grouped": (style.GREEN, "o"),
    "rotated": (style.BLUE, "s"),
    "random": (style.VERMILION, "^"),
    "sequential": (style.GREY, "D"),
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
ENDPOINTS = [4, 16, 64, 256, 1024, 4096]
ERRORS = {"ecolor": style.INK, "elinewidth": 1, "capsize": 2}


def spread_of(values: list[tables.Measured]) -> list[list[float]]:
    """How far least and most are from the median, as error bars want it."""
    return [[v.middle - v.least for v in values], [v.most - v.middle for v in values]]


def lines(axes: Axes, title: str, series: dict[str, dict], ticks: dict[float, str], **more) -> None:
    """Lines by name, each of points with or without a spread; the marks of the x axis."""
    for name, points in series.items():
        colour, marker = LOOKS[name]
        found = {
            at: value if isinstance(value, tables.Measured) else tables.Measured(*[value] * 3)
            for at, value in points.items()
            if value is not None
        }
        # Hollow and dashed: rotated often lies on grouped.
        hollow = {"fillstyle": "none", "markersize": 8, "linestyle": "--"}
        axes.errorbar(
            list(found),
            [value.middle for value in found.values()],
            spread_of(list(found.values())),
            color=colour,
            marker=marker,
            capsize=2,
            label=name,
            **(hollow if name == "rotated" else {}),
        )
    axes.set_title(title)
    if "base" in more:
        axes.set_xscale("log", base=more["base"])
    if more.get("log"):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(more.get("x", ""))
    axes.set_ylabel(more.get("y", ""))
    style.ticks_at(axes, list(ticks), list(ticks.values()))
    axes.tick_params(axis="x", labelsize=8)
    style.shorten(axes)
    if "legend" in more:
        axes.legend(loc=more["legend"])


def level(axes: Axes, height: float, words: str) -> None:
    axes.axhline(height, color=style.INK, linewidth=1, linestyle=(0, (5, 4)))
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    align = {"ha": "right", "va": "top", "fontsize": 9}
    axes.annotate(words, (1, height), xytext=(0, -3), **place, **align)


def legend(figure, axes: Axes) -> None:
    """Below all panels."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))


def block_bytes(name: str) -> int:
    """`4 KB` in bytes."""
    if name == "A1":
        return BYTES_OF_A1
    number, unit = name.split()
    return int(number) * UNITS[unit]


def ladder(document: str, path: Path, where: str) -> None:
    """`where`: the file system that the map outputs are on. Eight clients, otherwise the most."""
    there = [int(n) for n in re.findall(rf"All figures with (\d+) clients?, {where}\b", document)]
    clients = 8 if 8 in there else max(there)
    head = f"All figures with {clients} client{'' if clients == 1 else 's'}, {where}"
    rows = tables.after(document, head)
    blocks = dict.fromkeys(row["block"] for row in rows)
    ticks = {block_bytes(b): f"{BYTES_OF_A1} B\n(A1)" if b == "A1" else b for b in blocks}
    figure, panels = pyplot.subplots(2, 2, figsize=(10.5, 7.6))
    for axes, (column, (title, aim)) in zip(panels.flat, LADDER.items()):
        series: dict[str, dict] = {row["side"]: {} for row in rows}
        for row in rows:
            series[row["side"]][block_bytes(row["block"])] = tables.measured(row[column])
        lines(axes, title, series, ticks, base=2, log=True, x="size of a block")
        if aim:
            level(axes, aim[0], f"{aim[1]}: {aim[0]:g}")
    figure.suptitle(
        f"Faro and Spark's own transport, {clients} clients, by size of the blocks, {where}"
    )
    legend(figure, panels.flat[0])
    style.save(figure, path)


def spark(document: str, path: Path) -> None:
    """Bars from the table behind the picture's own place in the page; a panel for each column."""
    rows = tables.after(document, f"(benchmarks/{path.name})")
    names, sides = (list(dict.fromkeys(row[key] for row in rows)) for key in ("workload", "side"))
    figure, panels = pyplot.subplots(1, len(SPARK), figsize=(10.5, 4.2))
    width = 0.8 / len(sides)
    for axes, (column, head) in zip(panels, SPARK.items()):
        for number, side in enumerate(sides):
            of = [row for row in rows if row["side"] == side and tables.measured(row[column])]
            found = [tables.measured(row[column]) for row in of]
            shift = (number - (len(sides) - 1) / 2) * width
            axes.bar(
                [names.index(row["workload"]) + shift for row in of],
                [value.middle for value in found],
                width * 0.92,
                yerr=spread_of(found),
                color=LOOKS[side][0],
                error_kw=ERRORS,
                label=side,
            )
        axes.set_title(head)
        axes.grid(visible=False, axis="x")
        style.ticks_at(axes, list(range(len(names))), [WORKLOADS.get(n, n) for n in names])
    figure.suptitle("Spark workloads: medians of the runs, with their least and most")
    legend(figure, panels[0])
    style.save(figure, path)


def peers(document: str, path: Path) -> None:
    """A panel for each workload, a named bar for each side, also for one that was not measured."""
    rows = tables.after(document, f"(benchmarks/{path.name})")
    names, sides = (list(dict.fromkeys(row[key] for row in rows)) for key in ("workload", "side"))
    figure, panels = pyplot.subplots(3, 2, figsize=(10.5, 9))
    for axes, workload in zip(panels.flat, names):
        of = {row["side"]: row["job s"] for row in rows if row["workload"] == workload}
        for place, side in enumerate(sides):
            value = tables.measured(of.get(side, ""))
            if value is None:
                axes.annotate(" not measured", (0, place), va="center", fontsize=9)
                continue
            bar = {"xerr": spread_of([value]), "error_kw": ERRORS, "label": side}
            axes.barh(place, value.middle, 0.8, color=LOOKS[side][0], **bar)
        axes.set_yticks(range(len(sides)), sides)
        axes.set_ylim(len(sides) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.set_title(f"{workload}, job s")
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    figure.suptitle("Beside other shuffles: medians of the runs, with their least and most")
    style.save(figure, path)


def load(document: str, path: Path) -> None:
    """One server under load."""
    _, _, document = document.partition("## Measured: one server under load")

    def points(rows: list[dict[str, str]], key: str, column: str) -> dict:
        """By the first figure of a cell: 1,000 x 8, 50,000 of 200."""
        count = [float(row[key].split(maxsplit=1)[0].replace(",", "")) for row in rows]
        return dict(zip(count, (tables.measured(row[column]).middle for row in rows)))

    figure, panels = pyplot.subplots(2, 2, figsize=(10.5, 7.2))
    rows, key = tables.after(document, "### Clients and readers"), "clients x readers"
    series = {}
    for name in ("1 reader each", "8 readers each", "32 readers each"):
        of = [row for row in rows if row[key].endswith(f"x {name.split()[0]}")]
        series[name] = points(of, key, "blocks/s")
    ticks = {count: f"{count:,}" for count in (1, 10, 100, 1000)}
    more = {"base": 10, "x": "clients", "legend": "upper right"}
    lines(panels[0, 0], "Blocks per second (20 KiB), by clients", series, ticks, **more)
    rows = tables.after(document, "### Sizes of replies")
    values = {at: tables.measured(row["MB/s"]).middle for at, row in enumerate(rows)}
    ticks = {at: row["reply"] for at, row in enumerate(rows)}
    lines(panels[0, 1], "MB per second, by size of a reply", {"8 readers each": values}, ticks)
    for axes, head, title in (
        (panels[1, 0], "Map outputs", "CPU of a block, by map outputs (200 partitions each)"),
        (panels[1, 1], "Requests under way", "CPU of a request, by requests under way at once"),
    ):
        rows = tables.after(document, f"### {head}")
        key = next(iter(rows[0]))
        rows = [row for row in rows if " of 50,000" not in row[key]]
        client, server = (points(rows, key, c) for c in ("CPU µs/block, client", "server"))
        ticks = {at: style.short(at) for at in client}
        more = {"base": 10, "x": key, "y": "µs", "legend": "upper left"}
        lines(axes, title, {"client": client, "server": server}, ticks, **more)
    style.save(figure, path)


def scaling(result: dict, folder: Path) -> None:
    """What `faro sim` printed, against the number of endpoints."""
    ticks = {count: str(count) for count in ENDPOINTS}
    for name, title, words, marks, value in (
        (
            *("completion", "Time until the last endpoint has read everything", "completion, ms"),
            [10, 20, 50, 100, 200, 500, 1000],
            lambda of: of["completion_s"] * 1e3,
        ),
        (
            *("queue-pairs", "Most queue pairs of one endpoint that are active at once"),
            *("active queue pairs", [1, 10, 100, 1000]),
            lambda of: max(of["peak_active_queue_pairs"], 1),
        ),
    ):
        series = {
            policy: {run["endpoints"]: value(run["policies"][policy]) for run in result["sizes"]}
            for policy in ("grouped", "rotated", "random", "sequential")
        }
        figure, axes = pyplot.subplots(figsize=(7.2, 4.2))
        more = {"base": 2, "log": True, "x": "endpoints", "y": words, "legend": "upper left"}
        lines(axes, title, series, ticks, **more)
        axes.set_yticks(marks)
        most = max(value for points in series.values() for value in points.values())
        axes.set_ylim(marks[0], max(marks[-1], 1.5 * most))
        axes.minorticks_off()
        if name == "completion":
            ideal = result["sizes"][-1]["ideal_s"] * 1e3
            level(axes, ideal, f"the links alone: {ideal:.1f} ms")
        style.save(figure, folder / f"{name}.svg")


def main() -> None:
    folder = DOCS / "benchmarks"
    document = "\n".join(path.read_text() for path in sorted(folder.glob("*.txt")))
    for where in re.findall(r"\(benchmarks/ladder-(\w+)\.svg\)", document):
        ladder(document, folder / f"ladder-{where}.svg", where)
    spark(document, folder / "spark.svg")
    peers(document, folder / "peers.svg")
    folder = DOCS / "design" / "scaling"
    load((folder / "load.txt").read_text(), folder / "load.svg")
    scaling(json.loads((folder / "results.json").read_text()), folder)


if __name__ == "__main__":
    main()
