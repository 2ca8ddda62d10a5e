"""The picture of job times beside stock Spark's: README's, and what `make demo` draws. Written by
hand, since who tries the demo has Python and nothing more."""

from __future__ import annotations

from html import escape

GREEN, GREY, VERMILION, INK, BAND = "#009e73", "#767676", "#d55e00", "#222222", "#f6dcc9"


def part(bar: dict) -> float:
    return bar["faro"]["value"][0] / bar["stock"]["value"][0]


def apart(bar: dict) -> bool:
    (_, least, most), (_, low, high) = bar["faro"]["value"], bar["stock"]["value"]
    return most < low or high < least


def rect(x: float, y: float, wide: float, high: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{high}" fill="{colour}"/>'


def path(steps: str, colour: str, width: float) -> str:
    return f'<path d="{steps}" stroke="{colour}" stroke-width="{width}" fill="none"/>'


def words(x: float, y: float, text: str, more: str = 'text-anchor="middle"') -> str:
    return f'<text x="{x:.1f}" y="{y}" {more}>{escape(text)}</text>'


def picture(bars: list[dict], where: str) -> str:
    """Each bar has a name and, for `stock` and `faro`, `value`: the median, the least, the most."""
    wide, left, right, top, step, high, most = 820, 318, 786, 44, 36, 20, 160
    scale = (right - left) / most
    bottom = top + step * len(bars)
    size = f'width="{wide}" height="{bottom + 62}"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {bottom + 62}" {size}>',
        "<title>Job time with Faro against stock Spark</title>",
        f'<rect {size} fill="white"/>',
        f'<g font-family="DejaVu Sans, Verdana, sans-serif" font-size="12" fill="{INK}">',
    ]

    def at(percent: float) -> float:
        return left + percent * scale

    for number, bar in enumerate(bars):
        y = top + number * step
        middle = y + high // 2
        stock, *spread = bar["stock"]["value"]
        low, up = (100 * value / stock for value in spread)
        value, least, up_to = (100 * one / stock for one in bar["faro"]["value"])
        colour = GREY if not apart(bar) else GREEN if value < 100 else VERMILION
        points = round(value - 100)
        label = f"+{points} %" if points > 0 else f"−{-points} %" if points else "0 %"
        begin, end = f"M{at(least):.1f} {middle}", f"M{at(up_to):.1f} {middle}"
        whisker = f"{begin}H{at(up_to):.1f}{begin}m0 -5v10{end}m0 -5v10"
        out += [
            rect(at(low), y - 4, (up - low) * scale, high + 8, BAND),
            rect(left, y, value * scale, high, colour),
            words(left - 8, middle + 4, bar["name"], 'text-anchor="end"'),
            words(left + 8, middle + 4, label, 'fill="white" font-weight="bold"'),
            path(whisker, INK, 1.5),
        ]
    shown = "lines: least and most of the runs, shaded: those of stock Spark"
    of_stock = f'text-anchor="middle" fill="{VERMILION}"'
    out += [
        path(f"M{at(100):.1f} {top - 12}V{bottom}", VERMILION, 2),
        words(at(100), top - 18, "stock Spark = 100", of_stock),
        path(f"M{left} {bottom}H{right}", INK, 1),
        *(words(at(tick), bottom + 18, str(tick)) for tick in range(0, most + 1, 20)),
        words(wide / 2, bottom + 38, f"time of the job; {shown}; grey bar: the spreads overlap"),
        words(wide / 2, bottom + 54, where),
        "</g>",
        "</svg>",
    ]
    return "\n".join(out) + "\n"
