"""Printed numbers are rounded: the bounds must hold the number that was rounded, and no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.span import Span, exactly, printed_bytes, rounded, whole
from oortriage.evidence.values import GIB

SIZES = st.integers(-(200 * GIB), 200 * GIB)


@given(SIZES, st.sampled_from([2, 4]))
def test_the_bytes_behind_a_printed_size_lie_within_its_bounds(size: int, decimals: int) -> None:
    printed = round(round(size / GIB, decimals) * GIB)
    span = printed_bytes(printed)
    assert span.low - 1 <= size <= span.high + 1 or span.exact
    assert span.high - span.low in (0, pytest.approx(GIB / 10**2), pytest.approx(GIB / 10**4))


def test_a_size_printed_in_full_has_no_bounds() -> None:
    assert printed_bytes(4803199488).exact
    assert printed_bytes(round(4.47 * GIB)).high - printed_bytes(round(4.47 * GIB)).value == pytest.approx(0.005 * GIB)


@given(*[st.floats(1, 1e6)] * 4)
def test_sums_hold_every_pair_within_the_bounds(a: float, b: float, c: float, d: float) -> None:
    one, other = Span(a, min(a, b), max(a, b)), Span(c, min(c, d), max(c, d))
    for x in (one.low, one.high):
        for y in (other.low, other.high):
            slack = 1e-9 * (abs(x) + abs(y) + abs(x * y))
            assert (one + other).low - slack <= x + y <= (one + other).high + slack
            assert (one - other).low - slack <= x - y <= (one - other).high + slack
            assert (one * other).low - slack <= x * y <= (one * other).high + slack
            assert (one / other).low - slack <= x / y <= (one / other).high + slack


def test_nothing_is_divided_by_what_may_be_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        exactly(1) / rounded(0, 2)


def test_blocks_are_whole() -> None:
    assert whole(Span(3.9, 2.2, 4.0)) == Span(3, 2, 4)
