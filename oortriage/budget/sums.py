"""Sums of figures that keep their provenance: one guess among the terms makes a guess of the sum, with its range."""

from __future__ import annotations

from collections.abc import Iterable

from oortriage.budget.figure import Figure


def low(figure: Figure) -> float:
    """Return the lower bound of a figure; itself where it has none."""
    return figure.value if figure.low is None else figure.low


def high(figure: Figure) -> float:
    """Return the upper bound of a figure; itself where it has none."""
    return figure.value if figure.high is None else figure.high


def sum_of(plus: Iterable[Figure], minus: Iterable[Figure] = (), *, unit: str = "bytes", how: str = "") -> Figure:
    """Add and subtract figures of one unit; their ranges are taken at their worst."""
    added, taken = list(plus), list(minus)
    value = sum(one.value for one in added) - sum(one.value for one in taken)
    if all(one.low is None and one.high is None for one in (*added, *taken)):
        guessed = any(one.provenance == "estimated" for one in (*added, *taken))
        return Figure(value, unit, "estimated" if guessed else "derived", how)
    return Figure(
        value,
        unit,
        "estimated" if any(one.provenance == "estimated" for one in (*added, *taken)) else "derived",
        how,
        low=sum(map(low, added)) - sum(map(high, taken)),
        high=sum(map(high, added)) - sum(map(low, taken)),
    )


def estimate(value: float, how: str, *, least: float, most: float, unit: str = "bytes") -> Figure:
    """Make a guess with its range; a range never leaves its value out."""
    return Figure(value, unit, "estimated", how, low=min(least, value), high=max(most, value))
