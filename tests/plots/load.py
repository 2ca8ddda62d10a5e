"""The picture of one server under load in docs/design/scaling.md, from the tables of that page."""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from . import style, tables

CLIENT, SERVER = "CPU µs/block, client", "server"
READERS = {"1": (style.GREY, "D"), "8": (style.BLUE, "s"), "32": (style.GREEN, "o")}


def draw(document: str, path: Path) -> None:
    _, _, load = document.partition("## Measured: one server under load")
    figure, panels = pyplot.subplots(2, 2, figsize=(10.5, 7.2))
    clients(panels[0, 0], tables.after(load, "### Clients and readers"))
    sizes(panels[0, 1], tables.after(load, "### Sizes of replies"))
    cpu(panels[1, 0], tables.after(load, "### Map outputs"), "map outputs")
    panels[1, 0].set_title("CPU of a block, by map outputs (200 partitions each)")
    cpu(panels[1, 1], tables.after(load, "### Requests under way"), "under way at once")
    panels[1, 1].set_title("CPU of a request, by requests under way at once")
    style.save(figure, path)


def count(cell: str) -> float:
    """The first figure of a cell: 1,000 x 8, 50,000 of 200."""
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


def middle(cell: str) -> float:
    found = tables.measured(cell)
    if found is None:
        raise ValueError(f"'{cell}' is no figure")
    return found.middle


def clients(axes: Axes, rows: list[dict[str, str]]) -> None:
    for readers, (colour, marker) in READERS.items():
        shown = [row for row in rows if row["clients x readers"].endswith(f"x {readers}")]
        places = [count(row["clients x readers"]) for row in shown]
        values = [middle(row["blocks/s"]) for row in shown]
        name = f"{readers} reader{'' if readers == '1' else 's'} each"
        axes.plot(places, values, color=colour, marker=marker, label=name)
    axes.set_xscale("log")
    style.ticks_at(axes, [1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.set_ylim(bottom=0)
    axes.set_title("Blocks per second (20 KiB), by clients")
    axes.set_xlabel("clients")
    axes.legend(loc="upper right")
    style.shorten(axes)


def sizes(axes: Axes, rows: list[dict[str, str]]) -> None:
    places = list(range(len(rows)))
    values = [middle(row["MB/s"]) for row in rows]
    axes.plot(places, values, color=style.GREEN, marker="o")
    style.ticks_at(axes, places, [row["reply"] for row in rows])
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(bottom=0)
    axes.set_title("MB per second, by size of a reply")
    style.shorten(axes)


def cpu(axes: Axes, rows: list[dict[str, str]], column: str) -> None:
    shown = [row for row in rows if " of 50,000" not in row[column]]
    places = [count(row[column]) for row in shown]
    for name, label, colour, marker in (
        (CLIENT, "client", style.BLUE, "s"),
        (SERVER, "server", style.VERMILION, "^"),
    ):
        values = [middle(row[name]) for row in shown]
        axes.plot(places, values, color=colour, marker=marker, label=label)
    axes.set_xscale("log")
    style.ticks_at(axes, places, [style.short(place) for place in places])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(column)
    axes.set_ylabel("µs")
    axes.legend(loc="upper left")
