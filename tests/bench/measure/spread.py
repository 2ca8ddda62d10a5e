"""Medians and spreads."""

import statistics


def median(values):
    return statistics.median(values) if values else None


def of(rounds, key):
    """Returns (median, minimum, maximum) of one figure over rounds; None if there are no rounds."""
    values = [r[key] for r in rounds if r.get(key) is not None]
    return (statistics.median(values), min(values), max(values)) if values else None


def ratio(a, b):
    return a / b if a is not None and b else None
