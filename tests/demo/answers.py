"""Compares two answers to one query: rows in any order, doubles within a tolerance."""

import math

TOLERANCE = 1e-9


def read(path):
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    # By the exact cells first: near-equal doubles must not decide which rows are compared.
    return sorted(
        rows, key=lambda row: ([c for c in row if c[0] == "="], [c for c in row if c[0] == "~"])
    )


def difference(left_path, right_path):
    """What differs first, or None."""
    left, right = read(left_path), read(right_path)
    if not left:
        return "the answer is empty"
    if len(left) != len(right):
        return f"{len(left)} rows against {len(right)}"
    for a, b in zip(left, right):
        if len(a) != len(b) or not all(same(x, y) for x, y in zip(a, b)):
            return f"{a} against {b}"
    return None


def same(a, b):
    if a == b:
        return True
    return (
        a[0] == b[0] == "~"
        and "null" not in (a[1:], b[1:])
        and math.isclose(float(a[1:]), float(b[1:]), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    )
