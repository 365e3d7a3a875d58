"""Theil's and Sen's slope: right on a line, unmoved by what is no line, an interval that covers."""

from __future__ import annotations

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.watch.slope import theil_sen


def noise(slope: float, count: int, spread: float, seed: int) -> list[tuple[float, float]]:
    source = random.Random(seed)
    return [(float(t), slope * t + source.gauss(0, spread)) for t in range(count)]


@given(st.floats(-1e6, 1e6), st.floats(-1e9, 1e9), st.integers(3, 40))
def test_a_line_is_found_with_no_width(slope: float, start: float, count: int) -> None:
    line = theil_sen([(float(t), start + slope * t) for t in range(count)])
    assert line
    wide = 1e-9 * (abs(start) + abs(slope) * count + 1)
    assert line.slope == pytest.approx(slope, abs=wide)
    assert line.high - line.low <= 2 * wide
    assert line.start == pytest.approx(start, abs=wide)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e18)), max_size=30).map(sorted))
def test_any_points_give_an_ordered_interval_or_none(points: list[tuple[float, float]]) -> None:
    line = theil_sen(points)
    assert line is None or line.low <= line.slope <= line.high


def test_a_quarter_of_outliers_does_not_move_it() -> None:
    points = [(float(t), 2.0 * t if t % 4 else 1e9) for t in range(60)]
    line = theil_sen(points)
    assert line
    assert line.slope == pytest.approx(2, rel=0.05)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """95 % of 300 fits; a binomial's own spread is 1.3 %."""
    lines = [theil_sen(noise(3.0, 40, 20.0, seed)) for seed in range(300)]
    covered = sum(line is not None and line.low <= 3.0 <= line.high for line in lines)
    assert 0.91 <= covered / 300 <= 0.99


def test_neighbours_that_depend_on_each_other_widen_it() -> None:
    """A walk without a trend drifts; the plain interval would call three quarters of such drifts sure."""
    sure = 0
    for seed in range(100):
        source = random.Random(seed)
        level, points = 0.0, []
        for t in range(60):
            level = 0.9 * level + source.gauss(0, 1)
            points.append((float(t), level))
        line = theil_sen(points)
        assert line
        sure += not line.low <= 0 <= line.high
    assert sure <= 15


def test_more_noise_makes_it_wider() -> None:
    widths = [
        median(line.high - line.low for seed in range(20) if (line := theil_sen(noise(1, 30, spread, seed))))
        for spread in (1.0, 10.0)
    ]
    assert widths[1] > 5 * widths[0]


@pytest.mark.parametrize("points", [[], [(0.0, 1.0)], [(0.0, 1.0), (1.0, 2.0)], [(1.0, 1.0)] * 9])
def test_too_few_moments_are_none(points: list[tuple[float, float]]) -> None:
    assert theil_sen(points) is None
