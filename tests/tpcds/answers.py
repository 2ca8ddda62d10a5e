"""Compares two answers to one query: rows in any order, doubles within a tolerance."""

import math
from collections import Counter

TOLERANCE = 1e-9


def difference(left_path, right_path, may_be_empty=False):
    """What differs first, or None. Each line is a row, each cell begins with `=` or, where it is a
    double, with `~`: a sum of doubles depends on the order in which they come."""
    left, right = (Counter(path.read_text().split("\n")) for path in (left_path, right_path))
    if left == right:
        return "the answer is empty" if len(left) == 1 and not may_be_empty else None
    # Equal rows are equal pairs; the others may still differ by rounding only.
    left, right = _rows(left - right), _rows(right - left)
    if len(left) != len(right):
        return (
            f"{len(left)} rows that the other side has not, against {len(right)}: "
            f"{(left or [None])[0]} against {(right or [None])[0]}"
        )
    for a, b in zip(left, right):
        if len(a) != len(b) or not all(same(x, y) for x, y in zip(a, b)):
            return f"{a} against {b}"
    return None


def _rows(lines):
    rows = [line.split("\t") for line in lines.elements()]
    # By the exact cells first: near-equal doubles must not decide which rows are compared.
    return sorted(
        rows, key=lambda row: ([c for c in row if c[:1] != "~"], [_number(c) for c in row])
    )


def _number(cell):
    """A double, so that NaN, which has no order, comes last."""
    value = float(cell[1:]) if cell[:1] == "~" else 0.0
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def same(a, b):
    if a == b:
        return True
    return a[:1] == b[:1] == "~" and math.isclose(
        float(a[1:]), float(b[1:]), rel_tol=TOLERANCE, abs_tol=TOLERANCE
    )
