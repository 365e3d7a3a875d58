"""A number as a log prints it: rounded, so true only between two bounds; and sums that carry the bounds along."""

from __future__ import annotations

import math

import msgspec

from oortriage.evidence.values import GIB


class Span(msgspec.Struct, frozen=True):
    """A value between ``low`` and ``high``, in any one unit; exact where the three are one."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the bounds leave no room."""
        return self.low == self.high

    def __add__(self, other: Span) -> Span:
        """Add; bounds add up."""
        return Span(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Span) -> Span:
        """Subtract; the other's upper bound makes the lower one."""
        return Span(self.value - other.value, self.low - other.high, self.high - other.low)

    def __mul__(self, other: Span) -> Span:
        """Multiply; the bounds are the outermost products."""
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Span(self.value * other.value, min(corners), max(corners))

    def __truediv__(self, other: Span) -> Span:
        """Divide by what is surely above zero.

        Raises:
            ZeroDivisionError: the divisor may be zero or less.
        """
        if other.low <= 0:
            raise ZeroDivisionError("the divisor may be zero")
        corners = [a / b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Span(self.value / other.value, min(corners), max(corners))

    def meets(self, other: Span, slack: float = 0.0) -> bool:
        """Tell whether both can be the same number, ``slack`` (same unit) apart at most."""
        return self.low - slack <= other.high and other.low - slack <= self.high


def exactly(value: float) -> Span:
    """Return a number that is known to its last digit."""
    return Span(value, value, value)


def rounded(value: float, decimals: int) -> Span:
    """Return a number that was printed with so many decimals."""
    half = 0.5 * 10**-decimals
    return Span(value, value - half, value + half)


def printed_bytes(value: float) -> Span:
    """Return bytes that were read from a figure in GiB, with the bounds of its rounding.

    vLLM prints GiB with two decimals, and weights up to 0.11.0 with four. A size that is no such figure was
    printed in full.
    """
    for decimals in (2, 4):
        digits = value / GIB * 10**decimals
        # A figure of n decimals comes back within half a byte; any other size is that near by accident alone.
        if abs(digits - round(digits)) <= 0.75 * 10**decimals / GIB:
            half = 0.5 * GIB / 10**decimals
            return Span(value, value - half, value + half)
    return exactly(value)


def whole(span: Span) -> Span:
    """Round down to whole numbers, as vLLM does with blocks."""
    return Span(*(float(math.floor(one)) for one in (span.value, span.low, span.high)))
