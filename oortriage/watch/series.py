"""One quantity over time in bounded memory: medians of bins, and two windows over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

from oortriage.watch.slope import Point

#: The long window is this many times the short one.
LONG = 6


class Series:
    """Values over time. A bin's median stands for it, so that a spike inside a bin vanishes; memory stays bounded."""

    def __init__(self, window_s: float, bin_s: float) -> None:
        """``window_s`` is the short window and ``bin_s`` the width of a bin, in seconds."""
        self._window, self._bin = window_s, bin_s
        self._bins: deque[Point] = deque(maxlen=round(LONG * window_s / bin_s) + LONG)
        self._open: list[Point] = []
        self._open_until = 0.0
        self.first: Point | None = None
        self.last: Point | None = None
        self.lowest = self.highest = 0.0

    def add(self, time: float, value: float) -> None:
        """Take one value; times must not run backwards."""
        if self.first is None:
            self.first, self.lowest, self.highest = (time, value), value, value
        self.last = (time, value)
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)
        if self._open and time >= self._open_until:
            self._bins.append(_middle(self._open))
            self._open = []
        if not self._open:
            # Bins lie on a fixed grid, so that samples that come a little late do not shift them. A hair is allowed
            # for: intervals such as 0.1 s have no exact sum.
            self._open_until = ((time + self._bin * 1e-3) // self._bin + 1) * self._bin - self._bin * 1e-3
        self._open.append((time, value))

    def short(self) -> Sequence[Point]:
        """Return the bins of the short window, the open one left out."""
        return self._since(self._window)

    def long(self) -> Sequence[Point]:
        """Return the long window, as many points as the short one: the median of each few bins."""
        bins = self._since(self._window * LONG)
        return [_middle(bins[place : place + LONG]) for place in range(len(bins) % LONG, len(bins), LONG)]

    def is_high(self, margin: float) -> bool:
        """Tell whether the last bins lie by ``margin`` above all before the short window, its highest fiftieth aside.

        A leak has never been so high; an allocator's tooth that is longer than the window has. A short peak (a profile
        run) does not count.
        """
        recent = self._since(5 * self._bin)
        window = self._since(self._window)
        before = sorted(value for time, value in self._bins if time < window[0][0]) if window else []
        if not before:
            return True
        return median(value for _, value in recent) > before[int(0.98 * (len(before) - 1))] + margin

    def _since(self, seconds: float) -> list[Point]:
        if not self._bins:
            return []
        begin = self._bins[-1][0] - seconds
        return [point for point in self._bins if point[0] > begin]


def _middle(points: Sequence[Point]) -> Point:
    return median(time for time, _ in points), median(value for _, value in points)
