"""What a run comes to: every quantity with its trend, and every alarm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from oortriage.watch.sample import EngineLoad, Settings
from oortriage.watch.trend import Trend
from oortriage.watch.view import Scope, Watched
from oortriage.watch.watcher import Event, Watcher

SCHEMA_VERSION = 1


class Row(msgspec.Struct, frozen=True):
    """One quantity. Bytes; ``full_in_s``: seconds until what is left is used up, where it grows steadily."""

    scope: Scope
    gpu: str
    pid: int | None
    name: str
    now_bytes: int
    first_bytes: int
    lowest_bytes: int
    highest_bytes: int
    limit_bytes: int | None
    left_bytes: int | None
    trend: Trend
    full_in_s: float | None
    ended: bool = False


class Cost(msgspec.Struct, frozen=True):
    """What the watching itself took: processor time in seconds, reading and judging together."""

    cpu_s: float
    samples: int

    @property
    def ms_per_sample(self) -> float | None:
        """Milliseconds of processor time a sample."""
        return self.cpu_s / self.samples * 1000 if self.samples else None


class Summary(msgspec.Struct, frozen=True):
    """A run. Times in seconds since 1970; ``firing`` are the codes that fire at the end."""

    schema_version: int
    settings: Settings
    started_s: float | None
    ended_s: float | None
    samples: int
    dropped_samples: int
    interrupted: bool
    rows: list[Row]
    engine: EngineLoad | None
    events: list[Event]
    firing: list[str]
    notes: list[str]
    cost: Cost

    @property
    def exit_code(self) -> Literal[0, 1, 3, 130]:
        """130 interrupted, 3 nothing was read, 1 something fired, 0 nothing did."""
        if self.interrupted:
            return 130
        if not self.samples or not (self.rows or self.engine):
            return 3
        return 1 if self.events else 0


def summarise(watcher: Watcher, *, cpu_s: float, interrupted: bool = False, notes: Iterable[str] = ()) -> Summary:
    """Put a run together; ``cpu_s`` is the processor time it took."""
    view = watcher.view
    notes = list(notes)
    if watcher.dropped:
        notes.append(f"{watcher.dropped} samples were out of order, and left out")
    rows = [row(one) for key, one in sorted(view.watched.items())]
    rows += [row(one, ended=True) for one in watcher.ended]
    return Summary(
        schema_version=SCHEMA_VERSION,
        settings=view.settings,
        started_s=watcher.first_s,
        ended_s=view.now if watcher.samples else None,
        samples=watcher.samples,
        dropped_samples=watcher.dropped,
        interrupted=interrupted,
        rows=rows,
        engine=view.engine[-1][1] if view.engine else None,
        events=watcher.events,
        firing=sorted({one.code for one in watcher.firing()}),
        notes=[*notes, *(f"{count} of {watcher.samples} samples: {one}" for one, count in watcher.problems.items())],
        cost=Cost(round(cpu_s, 6), watcher.samples),
    )


def row(one: Watched, *, ended: bool = False) -> Row:
    """Turn a watched quantity into a row."""
    return Row(
        scope=one.key.scope,
        gpu=one.key.gpu,
        pid=one.key.pid if one.key.scope in ("process", "host") else None,
        name=one.name or one.key.path,
        now_bytes=one.now_bytes,
        first_bytes=int(one.series.first[1]) if one.series.first else 0,
        lowest_bytes=int(one.series.lowest),
        highest_bytes=int(one.series.highest),
        limit_bytes=one.limit_bytes,
        left_bytes=one.left_bytes,
        trend=one.trend,
        full_in_s=one.full_in_s,
        ended=ended,
    )
