"""What a rule sees: every watched quantity with its trend, and the last samples of the engine and the groups."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from oortriage.watch.sample import EngineLoad, GroupMemory, Settings
from oortriage.watch.series import Series
from oortriage.watch.trend import YOUNG, Trend

Scope = Literal["device", "process", "host", "group"]


class Key(msgspec.Struct, frozen=True, order=True):
    """What a series is about: a device (``gpu``), a process on it, a process in main memory, a control group."""

    scope: Scope
    gpu: str = ""
    pid: int = 0
    path: str = ""


class Watched(msgspec.Struct):
    """One quantity: its values, what they do, and what bounds them (bytes). Changes with every sample."""

    key: Key
    series: Series
    name: str = ""
    trend: Trend = YOUNG
    long_trend: Trend = YOUNG
    limit_bytes: int | None = None
    left_bytes: int | None = None
    asked_for: bool = True

    @property
    def now_bytes(self) -> int:
        """The last value."""
        return int(self.series.last[1]) if self.series.last else 0

    @property
    def full_in_s(self) -> float | None:
        """Seconds until what is left is used up at the present slope; None where it does not grow steadily."""
        if self.trend.kind != "steady" or self.left_bytes is None or self.trend.slope <= 0:
            return None
        return self.left_bytes / self.trend.slope


class View(msgspec.Struct):
    """Everything rules may look at. ``engine`` and ``groups`` hold (seconds, reading) of the lookback."""

    settings: Settings
    now: float = 0.0
    watched: dict[Key, Watched] = {}
    engine: deque[tuple[float, EngineLoad]] = msgspec.field(default_factory=deque)
    groups: dict[str, deque[tuple[float, GroupMemory]]] = {}
    #: Preemptions and kills since the run began, resets of the counters left out.
    oom_kills: dict[str, float] = {}

    def of(self, scope: Scope) -> list[Watched]:
        """Return the quantities of one scope, in a stable order."""
        return [self.watched[key] for key in sorted(self.watched) if key.scope == scope]

    def device_of(self, process: Watched) -> Watched | None:
        """Return the device a process is on."""
        return self.watched.get(Key("device", process.key.gpu))


class Finding(msgspec.Struct, frozen=True):
    """What a rule found now. ``subject`` tells findings of one rule apart; ``numbers`` are what the message says.

    Names of numbers end in their unit: ``_bytes``, ``_bytes_per_s``, ``_s``, ``_ratio``, or none for a count.
    """

    code: str
    subject: str
    message: str
    numbers: dict[str, float]
    gpu: str = ""
    pid: int | None = None
