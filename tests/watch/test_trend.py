"""What is a leak and what is not: curves that memory really draws, with any seed, phase and size."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.watch.series import LONG, Series
from oortriage.watch.trend import Trend, join, judge_points

MIB, GIB = 1 << 20, 1 << 30
WINDOW = 600.0
FLOOR = 64 * MIB
BINS = 60


def judged(curve: Callable[[float], float], *, spread: float = 0, seed: int = 0) -> Trend:
    """Judge a window of a curve over 0 to 1, with noise."""
    source = random.Random(seed)
    points = [(n * 10.0, 10 * GIB + curve(n / BINS) + source.gauss(0, spread)) for n in range(BINS)]
    return judge_points(points, WINDOW, FLOOR)


SEEDS = st.integers(0, 1 << 30)
FEW = settings(max_examples=60, deadline=None)


@FEW
@given(SEEDS, st.floats(1 * MIB, 4 * GIB))
def test_white_noise_is_no_growth(seed: int, spread: float) -> None:
    assert judged(lambda _: 0, spread=spread, seed=seed).kind not in ("steady", "slowing")


@FEW
@given(st.floats(2, 30), st.floats(0, 1), st.floats(10 * MIB, 20 * GIB))
def test_an_allocators_sawtooth_is_no_leak(teeth: float, phase: float, height: float) -> None:
    assert judged(lambda u: (u * teeth + phase) % 1 * height).kind != "steady"


@FEW
@given(st.floats(0.01, 0.99), st.floats(100 * MIB, 60 * GIB), SEEDS)
def test_a_step_is_no_leak(when: float, height: float, seed: int) -> None:
    assert judged(lambda u: height * (u > when), spread=MIB, seed=seed).kind != "steady"


@FEW
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1 * GIB, 30 * GIB)), min_size=1, max_size=4), SEEDS)
def test_the_steps_of_a_start_are_no_leak(steps: list[tuple[float, float]], seed: int) -> None:
    curve = judged(lambda u: sum(height for when, height in steps if u > when), spread=MIB, seed=seed)
    assert curve.kind != "steady"


@FEW
@given(st.floats(0.05, 1.0), st.floats(0.2 * GIB, 60 * GIB), SEEDS)
def test_a_warm_up_that_slows_is_no_leak(constant: float, height: float, seed: int) -> None:
    """An exponential with a time constant of up to the window."""
    trend = judged(lambda u: height * (1 - math.exp(-u / constant)), spread=height / 1000, seed=seed)
    assert trend.kind != "steady"


@FEW
@given(st.floats(0.05, 0.85), st.floats(0.2 * GIB, 60 * GIB), SEEDS)
def test_a_ramp_that_ended_is_no_leak(end: float, height: float, seed: int) -> None:
    """Weights that load at a steady rate, then nothing for the last seventh of the window."""
    assert judged(lambda u: height * min(u, end), spread=MIB, seed=seed).kind != "steady"


@FEW
@given(st.floats(80 * MIB, 60 * GIB), st.floats(0, 0.06), SEEDS)
def test_a_steady_leak_is_found_through_noise(rise: float, share: float, seed: int) -> None:
    trend = judged(lambda u: rise * u, spread=rise * share, seed=seed)
    assert trend.kind == "steady"
    assert trend.low <= trend.slope <= trend.high
    assert trend.slope == pytest.approx(rise / WINDOW, rel=0.15)


@FEW
@given(st.floats(120 * MIB, 20 * GIB), st.floats(6, 40), st.floats(0, 1))
def test_a_leak_in_pieces_is_found(rise: float, pieces: float, phase: float) -> None:
    """An allocator takes whole segments: the driver sees stairs."""
    assert judged(lambda u: math.floor(u * pieces + phase) * rise / pieces).kind == "steady"


@FEW
@given(st.floats(8, 30), st.floats(0, 1), st.floats(0.3 * GIB, 4 * GIB))
def test_a_leak_under_a_sawtooth_is_found(teeth: float, phase: float, rise: float) -> None:
    assert judged(lambda u: rise * u + (u * teeth + phase) % 1 * rise / 5).kind == "steady"


def test_slowing_growth_says_where_it_goes() -> None:
    trend = judged(lambda u: 8 * GIB * (1 - math.exp(-u / 0.6)))
    assert trend.kind == "slowing"
    assert trend.ends_at_bytes == pytest.approx(18 * GIB, rel=0.05)


@pytest.mark.parametrize(
    ("curve", "kind"),
    [
        (lambda _: 0, "flat"),
        (lambda u: 30 * MIB * u, "flat"),
        (lambda u: GIB * (u > 0.3), "settled"),
        (lambda u: -GIB * u, "shrinking"),
        (lambda u: GIB * (u > 0.88), "uneven"),
    ],
)
def test_what_else_there_is(curve: Callable[[float], float], kind: str) -> None:
    assert judged(curve).kind == kind


def test_less_than_a_window_is_too_young() -> None:
    points = [(n * 10.0, n * GIB) for n in range(40)]
    assert judge_points(points, WINDOW, FLOOR).kind == "young"


def over(curve: Callable[[float], float], minutes: int) -> Series:
    series = Series(WINDOW, 10.0)
    for second in range(0, minutes * 60, 5):
        series.add(float(second), curve(second))
    return series


def both(series: Series) -> Trend:
    long = judge_points(series.long(), LONG * WINDOW, FLOOR)
    return join(judge_points(series.short(), WINDOW, FLOOR), long, WINDOW, FLOOR)


def test_the_long_window_finds_what_the_short_one_cannot() -> None:
    """2 MiB a minute: 20 MiB in the short window, 120 MiB in the long one."""
    series = over(lambda t: 10 * GIB + t / 60 * 2 * MIB, 62)
    assert judge_points(series.short(), WINDOW, FLOOR).kind == "flat"
    trend = both(series)
    assert trend.kind == "steady"
    assert trend.slope * 60 == pytest.approx(2 * MIB, rel=0.01)
    assert trend.span_s > 3000


def test_growth_that_ended_in_the_short_window_is_not_told_by_the_long_one() -> None:
    series = over(lambda t: 10 * GIB + min(t, 3200) * MIB, 62)
    assert both(series).kind != "steady"


def test_memory_of_a_series_is_bounded_and_its_bins_are_medians() -> None:
    series = Series(WINDOW, 10.0)
    for second in range(100_000):
        series.add(float(second), 1e12 if second % 10 == 3 else 5.0)
    assert len(series.short()) <= 61
    assert len(series.long()) <= 61
    assert {value for _, value in series.short()} == {5.0}
    assert (series.lowest, series.highest) == (5.0, 1e12)
