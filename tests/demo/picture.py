"""The demo's picture: a bar for each job, stock Spark's time being 100, as SVG.

It is written by hand, since who tries the demo has Python and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

# The colours of tests/plots/style.py.
INK, PALE, GREEN, GREY, VERMILION = "#222222", "#e4e4e4", "#009e73", "#999999", "#d55e00"
WIDTH, LEFT, RIGHT = 720, 150, 20
TOP, ROW, BAR = 64, 38, 24
STEP = 20
WHITE = 'fill="white" font-weight="bold"'


@dataclass
class Job:
    name: str
    # Of stock Spark's time in percent: of the medians, and the least and most of the runs.
    middle: float
    least: float
    most: float
    # Whether it does little but shuffle.
    shuffles: bool


def svg(jobs: list[Job], title: str, note: str) -> str:
    end = max(120, *(STEP * (job.most // STEP + 1) for job in jobs))

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / end

    bottom = TOP + ROW * len(jobs)
    size = f'width="{WIDTH}" height="{bottom + 58}" viewBox="0 0 {WIDTH} {bottom + 58}"'
    font = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} fill="{INK}">',
        # A white ground: pages may be dark.
        '<rect width="100%" height="100%" fill="white"/>',
        _text(12, 24, title, "start", 'font-size="15" font-weight="bold"'),
        _text(across(100), TOP - 8, "stock Spark", "middle", f'fill="{VERMILION}"'),
    ]
    for number, job in enumerate(jobs):
        parts += _bar(job, TOP + ROW * number, across)
    parts += [
        _line(across(100), TOP - 2, across(100), bottom, VERMILION, 2.5),
        _line(across(0), bottom, across(end), bottom, INK, 1),
    ]
    for value in range(0, int(end) + 1, STEP):
        parts.append(_line(across(value), bottom, across(value), bottom + 5, INK, 1))
        parts.append(_text(across(value), bottom + 20, str(value), "middle"))
    parts.append(_text(WIDTH - RIGHT, bottom + 44, note, "end", 'font-size="12"'))
    return "\n".join([*parts, "</svg>", ""])


def _bar(job: Job, top: float, across) -> list[str]:
    middle = top + ROW / 2
    up = middle - BAR / 2
    colour = GREEN if job.shuffles else GREY
    return [
        _text(LEFT - 8, middle + 5, job.name, "end"),
        _box(across(0), up, across(100) - across(0), PALE),
        _box(across(0), up, across(job.middle) - across(0), colour),
        _text(across(0) + 8, middle + 5, _change(job.middle), "start", WHITE),
        _line(across(job.least), middle, across(job.most), middle, INK, 1.5),
        *(
            _line(across(at), middle - 5, across(at), middle + 5, INK, 1.5)
            for at in (job.least, job.most)
        ),
    ]


def _change(value: float) -> str:
    """The time that it takes less or more than stock Spark."""
    change = round(value - 100)
    return f"{'−' if change < 0 else '+' if change else '±'}{abs(change)} %"


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"/>'
    )


def _box(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
