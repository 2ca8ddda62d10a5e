"""Just enough SVG for a log-log line chart and a bar chart; readable on light and dark pages."""

import math
from xml.sax.saxutils import escape

COLOURS = {
    "netty": "#c0392b",
    "stock": "#c0392b",
    "faro-tcp": "#1f77b4",
    "faro-shm": "#2a9d5c",
    "faro-auto": "#2a9d5c",
    "free": "#888888",
}
GRID, INK = "#dddddd", "#222222"


class Drawing:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.parts = [f'<rect width="{width}" height="{height}" fill="white"/>']

    def line(self, x1, y1, x2, y2, colour=GRID, width=1.0, dash=None):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"{dashes}/>'
        )

    def path(self, points, colour):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(
            f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        for x, y in points:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" fill="{colour}"/>'
        )

    def text(self, x, y, words, size=11, anchor="middle", colour=INK, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def save(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" '
            'font-family="DejaVu Sans, Helvetica, Arial, sans-serif">\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def short(value):
    for bound, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= bound:
            return f"{value / bound:g}{suffix}"
    return f"{value:g}"


def log_panel(drawing, box, title, ticks, series, aim=None):
    """`ticks`: (x, label); `series`: colour -> [(x, (middle, least, most))]; `aim`: a level."""
    left, top, width, height = box
    values = [v for points in series.values() for _, figure in points for v in figure if v > 0]
    values += [aim] if aim else []
    if not values:
        return
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values))))
    first, last = math.log2(ticks[0][0]), math.log2(ticks[-1][0])

    def at(x, y):
        return (
            left + (math.log2(x) - first) / max(1e-9, last - first) * width,
            top + (high - math.log10(y)) / (high - low) * height,
        )

    drawing.text(left, top - 10, title, 13, "start", bold=True)
    for power in range(low, high + 1):
        y = at(ticks[0][0], 10.0**power)[1]
        drawing.line(left, y, left + width, y)
        drawing.text(left - 6, y + 4, short(10.0**power), anchor="end")
    for x, label in ticks:
        drawing.line(at(x, 1)[0], top, at(x, 1)[0], top + height)
        drawing.text(at(x, 1)[0], top + height + 16, label)
    if aim:
        drawing.line(
            left, at(ticks[0][0], aim)[1], left + width, at(ticks[0][0], aim)[1], INK, 1.2, "5,4"
        )
        drawing.text(left + width - 4, at(ticks[0][0], aim)[1] - 4, f"aim {short(aim)}", 10, "end")
    for colour, points in series.items():
        for x, (_, least, most) in points:
            drawing.line(*at(x, least), *at(x, most), colour, 1.5)
        drawing.path([at(x, figure[0]) for x, figure in points], colour)


def legend(drawing, left, top, entries):
    for name, colour in entries:
        drawing.line(left, top - 4, left + 22, top - 4, colour, 4)
        drawing.text(left + 28, top, name, 12, "start")
        left += 48 + 7.5 * len(name)


def bar_panel(drawing, box, title, groups):
    """`groups`: label -> [(colour, (middle, least, most))]."""
    left, top, width, height = box
    highest = max((f[2] for bars in groups.values() for _, f in bars), default=1) * 1.1
    drawing.text(left, top - 10, title, 13, "start", bold=True)
    drawing.line(left, top + height, left + width, top + height, INK)
    slot = width / max(1, len(groups))
    for number, (label, bars) in enumerate(groups.items()):
        middle = left + (number + 0.5) * slot
        drawing.text(middle, top + height + 16, label, 12)
        wide = slot * 0.8 / max(1, len(bars))
        for place, (colour, (value, least, most)) in enumerate(bars):
            x = middle - slot * 0.4 + place * wide
            tall = value / highest * height
            drawing.bar(x + 1, top + height - tall, wide - 2, tall, colour)
            centre = x + wide / 2
            drawing.line(
                centre,
                top + height - least / highest * height,
                centre,
                top + height - most / highest * height,
                INK,
            )
            drawing.text(centre, top + height - most / highest * height - 4, f"{value:.2f}", 9)
