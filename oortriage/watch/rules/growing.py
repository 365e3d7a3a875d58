"""What the rules about growth share: the arithmetic of a steady trend, in numbers and in words."""

from __future__ import annotations

from oortriage.watch.view import Watched
from oortriage.watch.words import duration, interval, rate, size


def numbers(one: Watched) -> dict[str, float]:
    """Return the figures of a steady growth; the slope in bytes a second with its 95 % interval."""
    trend = one.trend
    found: dict[str, float] = {
        "now_bytes": one.now_bytes,
        "slope_bytes_per_s": trend.slope,
        "slope_low_bytes_per_s": trend.low,
        "slope_high_bytes_per_s": trend.high,
        "span_s": trend.span_s,
        "rise_bytes": trend.rise_bytes,
    }
    if one.left_bytes is not None:
        found["left_bytes"] = one.left_bytes
    full = one.full_in_s
    if full is not None:
        found["full_in_s"] = full
    return found


def told(one: Watched, left: str) -> str:
    """Say how fast it grew, how sure that is, and when what is ``left`` is used up.

    ``left`` names it: "of GPU 0", "of the limit".
    """
    trend = one.trend
    said = (
        f"grew {rate(trend.slope)} for {duration(trend.span_s)}, 95 % interval {interval(trend.low, trend.high)}; "
        f"now {size(one.now_bytes)}"
    )
    if one.left_bytes is None:
        return said
    full = one.full_in_s
    ends = f": full in {duration(full)}" if full is not None else ""
    return f"{said}; {size(one.left_bytes)} left {left}{ends}"


def who(one: Watched) -> str:
    """Name a process."""
    return f"process {one.key.pid}{f' ({one.name})' if one.name else ''}"
