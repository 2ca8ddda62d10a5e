"""The pictures of docs/design/scaling.md, from what `faro sim` printed."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from matplotlib import pyplot
from matplotlib.axes import Axes

from . import style

# policy -> colour, marker, line: they differ in all three.
POLICIES = {
    "grouped": (style.GREEN, "o", "-"),
    "rotated": (style.BLUE, "s", "--"),
    "random": (style.VERMILION, "^", "-"),
    "sequential": (style.GREY, "D", ":"),
}
MARKED = [4, 16, 64, 256, 1024, 4096]


def completion(result: dict, path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7.2, 4.2))
    ideal = result["sizes"][-1]["ideal_s"] * 1e3
    axes.axhline(ideal, color=style.INK, linewidth=1, linestyle=(0, (5, 4)))
    axes.annotate(
        f"the links alone: {ideal:.1f} ms",
        (MARKED[-1], ideal),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=9,
    )
    by_size(axes, result, lambda of: of["completion_s"] * 1e3)
    axes.set_ylim(10, 1000)
    axes.set_yticks([10, 20, 50, 100, 200, 500, 1000])
    axes.set_title("Time until the last endpoint has read everything")
    axes.set_ylabel("completion, ms")
    style.shorten(axes)
    style.save(figure, path)


def queue_pairs(result: dict, path: Path) -> None:
    figure, axes = pyplot.subplots(figsize=(7.2, 4.2))
    by_size(axes, result, lambda of: max(of["peak_active_queue_pairs"], 1))
    axes.set_ylim(1, 6000)
    axes.set_yticks([1, 10, 100, 1000])
    axes.set_title("Most queue pairs of one endpoint that are active at once")
    axes.set_ylabel("active queue pairs")
    style.shorten(axes)
    style.save(figure, path)


def by_size(axes: Axes, result: dict, value: Callable[[dict], float]) -> None:
    """One line for each policy, against the number of endpoints; both axes are logarithmic."""
    sizes = [run["endpoints"] for run in result["sizes"]]
    for policy, (colour, marker, line) in POLICIES.items():
        values = [value(run["policies"][policy]) for run in result["sizes"]]
        axes.plot(
            sizes,
            values,
            color=colour,
            marker=marker,
            # Hollow: rotated often lies on grouped.
            fillstyle="none" if policy == "rotated" else "full",
            markersize=8 if policy == "rotated" else 5,
            linestyle=line,
            label=policy,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    style.ticks_at(axes, MARKED, [str(n) for n in MARKED])
    axes.set_xlabel("endpoints")
    axes.legend(loc="upper left")


def plane(result: dict, path: Path) -> None:
    """Nine endpoints in each round: the members of a group have one colour and shape."""
    rounds = result["plane"]["rounds"]
    # The groups of the first two rounds are the rows and the columns of the picture.
    rows, columns = rounds[0], rounds[1]
    where = {
        member: (
            next(i for i, group in enumerate(columns) if member in group),
            next(i for i, group in enumerate(rows) if member in group),
        )
        for group in rows
        for member in group
    }
    looks = [(style.GREEN, "o"), (style.VERMILION, "s"), (style.BLUE, "h")]
    figure, panels = pyplot.subplots(1, len(rounds), figsize=(7.6, 2.1))
    for number, (axes, groups) in enumerate(zip(panels, rounds)):
        for (colour, marker), group in zip(looks, groups):
            places = [where[member] for member in group]
            axes.scatter(*zip(*places), s=620, color=colour, marker=marker)
            for member, place in zip(group, places):
                axes.annotate(
                    str(member), place, ha="center", va="center", color="white", weight="bold"
                )
        axes.set_title(f"round {number}", loc="center")
        axes.set_xlim(-0.6, 2.6)
        axes.set_ylim(2.6, -0.6)
        axes.set_aspect("equal")
        axes.axis("off")
    style.save(figure, path)


def draw(result: dict, folder: Path) -> None:
    plane(result, folder / "plane.svg")
    completion(result, folder / "completion.svg")
    queue_pairs(result, folder / "queue-pairs.svg")
