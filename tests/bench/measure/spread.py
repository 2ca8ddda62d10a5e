"""Medians and spreads."""

import statistics


def median(values):
    return statistics.median(values) if values else None


def of(rounds, key):
    """(median, least, most) of one figure over rounds; None when there are none."""
    values = [r[key] for r in rounds if r.get(key) is not None]
    return (statistics.median(values), min(values), max(values)) if values else None


def ratio(a, b):
    return a / b if a is not None and b else None
