"""A slope that single jumps and outliers do not move, with its confidence interval.

Theil's and Sen's estimator: the median of the slopes of all pairs of points. It breaks down only when more than 29 %
of the points are bad (Sen, Journal of the American Statistical Association 63, 1968, 1379-1389). The interval is
Sen's, from the variance of Kendall's S, n(n-1)(2n+5)/18. Points that depend on their neighbours carry less
information than independent ones, so the variance is widened by (1+r)/(1-r), r being the correlation of neighbouring
residuals (Yue and Wang, Water Resources Management 18, 2004, 201-218, in its first-order form).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import msgspec

Point = tuple[float, float]
#: Two-sided 95 %.
_Z = 1.959964
_MOST_CORRELATION = 0.98


class Line(msgspec.Struct, frozen=True):
    """A fitted line: units of the values a second; ``low`` and ``high`` bound the slope with 95 % confidence.

    ``start`` is the line's value at the first point; ``spread`` the distance between the 10th and the 90th percentile
    of what the line leaves over.
    """

    slope: float
    low: float
    high: float
    start: float
    spread: float


def theil_sen(points: Sequence[Point]) -> Line | None:
    """Fit a line through (seconds, value) points in order of time; None for fewer than 3 moments.

    Takes n(n-1)/2 slopes, so keep n in the tens.
    """
    slopes: list[float] = []
    for place, (time, value) in enumerate(points, 1):  # the inner loop is what a judgement costs
        slopes += [(later - value) / (then - time) for then, later in points[place:] if then > time]
    slopes.sort()
    if len(points) < 3 or len(slopes) < 3:
        return None
    slope = median(slopes)
    begin = points[0][0]
    start = median(value - slope * (time - begin) for time, value in points)
    left = [value - start - slope * (time - begin) for time, value in points]
    count = len(points)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18 * _inflation(left))
    reach = _Z * deviation / 2
    middle = (len(slopes) - 1) / 2
    low = slopes[max(0, math.floor(middle - reach))]
    high = slopes[min(len(slopes) - 1, math.ceil(middle + reach))]
    return Line(slope, low, high, start, _spread(left))


def _inflation(left: Sequence[float]) -> float:
    """Return how much the dependence of neighbours widens the variance; 1 for independent points."""
    mean = sum(left) / len(left)
    centred = [value - mean for value in left]
    whole = sum(value * value for value in centred)
    if whole <= 0:
        return 1.0
    correlation = sum(one * two for one, two in pairwise(centred)) / whole
    # What is left over by a fitted line looks less dependent than it is: Marriott and Pope, Biometrika 41, 1954.
    correlation += (1 + 4 * correlation) / len(left) if correlation > 0 else 0.0
    correlation = min(max(correlation, 0.0), _MOST_CORRELATION)
    return (1 + correlation) / (1 - correlation)


def _spread(left: Sequence[float]) -> float:
    ordered = sorted(left)
    last = len(ordered) - 1
    return ordered[round(0.9 * last)] - ordered[round(0.1 * last)]
