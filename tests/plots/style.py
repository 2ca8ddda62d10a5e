"""How every plot looks, and how it is written: the same bytes from the same data."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

INK, GRID = "#222222", "#dddddd"
# Okabe and Ito's colours, which people with any colour vision tell apart.
VERMILION, BLUE, GREEN, GREY = "#d55e00", "#0072b2", "#009e73", "#767676"
ORANGE, SKY = "#e69f00", "#56b4e9"
PALE_VERMILION, PALE_GREEN = "#f2b48c", "#8ad1bc"

mpl.rcParams.update(
    {
        # Letters are paths, so that a page shows the same everywhere.
        "svg.fonttype": "path",
        "svg.hashsalt": "faro",
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.edgecolor": GRID,
        "axes.labelcolor": INK,
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.minor.bottom": False,
        "ytick.minor.left": False,
        "lines.linewidth": 2,
        "lines.markersize": 5,
        "legend.frameon": False,
        "figure.titleweight": "bold",
        "figure.titlesize": 13,
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.w_pad": 0.12,
        "figure.constrained_layout.h_pad": 0.1,
    }
)


class UnreadablePlotError(Exception):
    """A plot in which a reader would miss or confuse something."""


def check(figure: Figure, name: str) -> None:
    """No text may be cut by the edge, and no two sides may have one colour."""
    figure.draw_without_rendering()
    renderer = figure._get_renderer()
    shown = [*figure.texts, *figure.legends]
    if figure._suptitle:
        shown.append(figure._suptitle)
    for axes in figure.axes:
        shown += [axes.title, axes._left_title, *axes.texts]
        shown += [axes.xaxis, axes.yaxis] if axes.axison and axes.get_visible() else []
        shown += [axes.get_legend()] if axes.get_legend() else []
    for one in shown:
        box = one.get_tightbbox(renderer)
        edges = figure.bbox
        inside = box is None or (
            box.x0 >= -1 and box.y0 >= -1 and box.x1 <= edges.x1 + 1 and box.y1 <= edges.y1 + 1
        )
        if not inside:
            raise UnreadablePlotError(f"{name}: {one} is cut")
    for axes in figure.axes:
        sides = {}
        for handle, label in zip(*axes.get_legend_handles_labels()):
            side = sides.setdefault(colour_of(handle), label)
            if side != label:
                raise UnreadablePlotError(f"{name}: '{side}' and '{label}' have one colour")


def colour_of(handle: object) -> str:
    """Of a line, of bars, or of a line with error bars."""
    first = handle[0] if isinstance(handle, tuple) else handle
    found = first.get_color() if hasattr(first, "get_color") else first.get_facecolor()
    return mpl.colors.to_hex(found)


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A white ground: pages may be dark.
    figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
    check(figure, path.name)
    pyplot.close(figure)
    text = path.read_text()
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def short(value: float) -> str:
    """A figure of an axis: 20, 0.3, 5k, 2M."""
    for bound, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= bound:
            return f"{value / bound:g}{suffix}"
    return f"{value:g}"


def shorten(axes: Axes) -> None:
    """Labels of the y axis without exponents."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def ticks_at(axes: Axes, positions: list[float], labels: list[str]) -> None:
    """Marks on the x axis there and nowhere else."""
    axes.set_xticks(positions, labels)
    axes.minorticks_off()
