"""Reads the stored tables of results (docs/benchmarks/*.txt): a plot shows what they say."""

from __future__ import annotations

import re
from typing import NamedTuple


class Measured(NamedTuple):
    """The median of the rounds, with their least and most."""

    middle: float
    least: float
    most: float


FIGURE = re.compile(r"([\d,.]+)(?: \(([\d,.]+)–([\d,.]+)\))?")


def measured(cell: str) -> Measured | None:
    """None for what was not measured, which the table has as a dash."""
    match = FIGURE.fullmatch(cell)
    if match is None:
        return None
    middle, *others = (float(text.replace(",", "")) if text else None for text in match.groups())
    least, most = (middle if other is None else other for other in others)
    return Measured(middle, least, most)


def after(document: str, start: str) -> list[dict[str, str]]:
    """The first table after a piece of text, as a row for each line; its columns by their heads."""
    _, found, rest = document.partition(start)
    if not found:
        raise ValueError(f"the document has no '{start}'")
    lines = rest[rest.index("\n|") :].strip().splitlines()
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    head, _align, *body = rows
    return [dict(zip(head, row)) for row in body]
