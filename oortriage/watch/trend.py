"""What a series does: steady growth, growth that ends or slows, flat, or too short to tell.

A window is cut into six parts. Steady growth is a slope that is positive with 95 % confidence, over the whole window,
that stands out of the noise, comes in many small rises, and goes on in every part up to the last. Warm-up fails at
least one of these: it comes in few jumps, it has ended, or it slows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Literal

import msgspec

from oortriage.watch.slope import Line, Point, theil_sen

#: ``steady``: grows without end as far as can be seen. ``settled``: grew and stopped. ``slowing``: grows less and less.
#: ``uneven``: changes, but in jumps. ``young``: not yet seen for a whole window.
Kind = Literal["young", "flat", "steady", "slowing", "settled", "uneven", "shrinking"]

_PARTS = 6
#: Fewer bins say too little for an interval; fewer rises in a window may be steps of a start.
_LEAST_POINTS, _LEAST_RISES = 12, 5
#: Of a window must have been seen.
_WHOLE = 0.85
#: The rise must be this many times the spread of what the line leaves over.
_OVER_NOISE = 2.0
#: A series is judged again with every bin, so an alarm takes more than 95 %: the slope must be as many half widths of
#: the 95 % interval above zero as make 99.9 % (3.29 against 1.96 deviations).
_SURE = 3.29 / 1.96


class Trend(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a series does over a window. Slopes in bytes a second, with a 95 % interval; ``span_s`` in seconds.

    ``rise_bytes`` is slope times span. ``ends_at_bytes``: where slowing growth comes to, if it goes on slowing so.
    """

    kind: Kind
    span_s: float = 0.0
    slope: float = 0.0
    low: float = 0.0
    high: float = 0.0
    rise_bytes: float = 0.0
    ends_at_bytes: float | None = None


YOUNG = Trend("young")


def join(short: Trend, long: Trend, window_s: float, floor_bytes: float, *, high: bool = True) -> Trend:
    """Choose between what the short and the long window show: the long one counts where only it shows a steady growth.

    ``window_s`` is the short window, ``floor_bytes`` the growth in it that counts; ``high``: the level lies
    above all before, without which growth is a way back up.
    """
    if short.kind == "steady" and not high:
        return msgspec.structs.replace(short, kind="uneven")
    # While the short window shows a rise that stops or slows, the long one only tells of the same rise, smoothed.
    if short.kind not in ("flat", "uneven") or long.kind != "steady":
        return short
    # A slope that the short window would have seen, and did not see, is over.
    if short.kind == "flat" and long.slope * window_s >= 2 * floor_bytes:
        return short
    return long


def judge_points(points: Sequence[Point], window_s: float, floor_bytes: float) -> Trend:
    """Say what points in order of time do over a window of ``window_s`` seconds."""
    if len(points) < _LEAST_POINTS:
        return YOUNG
    span = points[-1][0] - points[0][0]
    if span < _WHOLE * window_s * (1 - 1 / len(points)):
        return YOUNG
    if all(value == points[0][1] for _, value in points):
        return Trend("flat", span)  # a pool that never moves needs no pairs of points
    line = theil_sen(points)
    if line is None:
        return YOUNG
    trend = Trend("flat", span, line.slope, line.low, line.high, line.slope * span)
    levels = _levels(points)
    change = max(levels) - min(levels)
    if change < floor_bytes and abs(trend.rise_bytes) < floor_bytes:
        return trend
    if _ended(levels, floor_bytes):
        return msgspec.structs.replace(trend, kind="settled")
    if trend.rise_bytes >= floor_bytes and line.low > 0:
        slower = _slows(points)
        if slower is not None:
            return msgspec.structs.replace(trend, kind="slowing", ends_at_bytes=points[-1][1] + slower)
        if _is_steady(points, line, trend, levels):
            return msgspec.structs.replace(trend, kind="steady")
    if line.high < 0 and -trend.rise_bytes >= floor_bytes:
        return msgspec.structs.replace(trend, kind="shrinking")
    # Levels that differ no more than neighbours do are noise.
    noise = median(abs(later[1] - earlier[1]) for earlier, later in pairwise(points))
    flat = change <= 4 * noise and line.low <= 0 <= line.high
    return trend if flat else msgspec.structs.replace(trend, kind="uneven")


def _levels(points: Sequence[Point]) -> list[float]:
    """Return the median value of each of six parts, cut by count."""
    edges = [round(part * len(points) / _PARTS) for part in range(_PARTS + 1)]
    return [median(value for _, value in points[begin:end]) for begin, end in pairwise(edges)]


def _smoothed(points: Sequence[Point]) -> list[float]:
    """Return running medians of five: a dip or a spike of two bins vanishes, a step stays where it is."""
    values = [value for _, value in points]
    return [median(values[max(0, place - 2) : place + 3]) for place in range(len(values))]


def _is_steady(points: Sequence[Point], line: Line, trend: Trend, levels: Sequence[float]) -> bool:
    values = _smoothed(points)
    rises = [later - earlier for earlier, later in pairwise(values) if later > earlier]
    if len(rises) < _LEAST_RISES or max(rises) > trend.rise_bytes / 2:
        return False
    if trend.rise_bytes < _OVER_NOISE * line.spread or line.slope < _SURE * (line.slope - line.low):
        return False
    step = trend.rise_bytes / _PARTS
    steps = [later - earlier for earlier, later in pairwise(levels)]
    grown = sum(one >= step / 4 for one in steps)
    going_on = steps[-1] >= 0.4 * step and steps[-1] + steps[-2] >= step
    return grown >= len(steps) - 1 and min(steps) >= -step / 2 and going_on and not _stopped(points, line, trend)


def _stopped(points: Sequence[Point], line: Line, trend: Trend) -> bool:
    """Tell whether the last few points lie clearly beneath the line: growth that ended a moment ago.

    Clearly is more than a twentieth of the rise, and most of the largest jump: between two pieces that an allocator
    takes there is nothing to be seen either.
    """
    begin = points[0][0]
    below = median(line.start + line.slope * (time - begin) - value for time, value in points[-5:])
    jump = max(abs(later - earlier) for earlier, later in pairwise(_smoothed(points)))
    return below > 0.05 * trend.rise_bytes + 0.75 * jump


def _ended(levels: Sequence[float], floor_bytes: float) -> bool:
    """Tell whether a rise lies in the first four parts, and the last two are level with each other."""
    rise = max(levels[-2:]) - min(levels[:-2])
    if any(later - earlier < -0.1 * rise for earlier, later in pairwise(levels)):
        return False  # what goes up and down has not settled
    return rise >= floor_bytes and abs(levels[-1] - levels[-2]) <= 0.03 * rise


def _slows(points: Sequence[Point]) -> float | None:
    """Return what is still to come, in bytes, where the second half grew clearly less than the first; else None.

    A jump's worth is allowed for, because memory comes in pieces. If each half grows by the share q of the half
    before, the halves to come add up to rise x q / (1 - q).
    """
    half = len(points) // 2
    first, second = theil_sen(points[: half + 1]), theil_sen(points[half:])
    if first is None or second is None:
        return None
    before = first.slope * (points[half][0] - points[0][0])
    after = second.slope * (points[-1][0] - points[half][0])
    jump = max((later - earlier for earlier, later in pairwise(_smoothed(points))), default=0.0)
    if before <= 0 or after + jump >= 0.75 * before:
        return None
    share = max(after, 0.0) / before
    return max(after, 0.0) * share / (1 - share)
