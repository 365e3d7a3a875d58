"""Samples made up for tests: curves of memory over time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from oortriage.watch.sample import DeviceMemory, EngineLoad, GroupMemory, HostMemory, ProcessMemory, Sample, Settings
from oortriage.watch.watcher import Event, Watcher

MIB, GIB = 1 << 20, 1 << 30
TOTAL = 80 * GIB
BEGIN = 1.7e9

Curve = Callable[[float], float]


def flat(level: float = 70 * GIB) -> Curve:
    return lambda _: level


_NOTHING = flat(0)


def leak(per_minute: float, level: float = 10 * GIB, since: float = 0) -> Curve:
    return lambda t: level + max(0.0, t - since) * per_minute / 60


def noisy(curve: Curve, spread: float, seed: int = 0) -> Curve:
    source = random.Random(seed)
    return lambda t: curve(t) + source.gauss(0, spread)


def samples(
    processes: dict[int, Curve],
    minutes: float,
    *,
    interval: float = 5.0,
    others: Curve = _NOTHING,
    named: bool = True,
    host: dict[int, Curve] | None = None,
    group: Callable[[float], GroupMemory] | None = None,
    engine: Callable[[float], EngineLoad] | None = None,
) -> Iterator[Sample]:
    """One device with these processes, and ``others`` that nobody names; values by seconds since the beginning."""
    for number in range(int(minutes * 60 / interval)):
        t = number * interval
        used = {pid: max(0, int(curve(t))) for pid, curve in processes.items()}
        whole = min(TOTAL, sum(used.values()) + int(others(t)))
        listed = tuple(ProcessMemory(pid, f"p{pid}", size) for pid, size in used.items()) if named else ()
        groups = (group(t),) if group else ()
        yield Sample(
            BEGIN + t,
            (DeviceMemory("0", "GPU-0", "Test", TOTAL, whole, TOTAL - whole, listed),),
            tuple(
                HostMemory(pid, f"p{pid}", max(0, int(curve(t))), 0, 0, groups[0].path if groups else "")
                for pid, curve in (host or {}).items()
            ),
            groups,
            engine(t) if engine else None,
        )


def run(given: Iterator[Sample], **settings: object) -> Watcher:
    watcher = Watcher(Settings(**settings))  # type: ignore[arg-type]
    for sample in given:
        watcher.feed(sample)
    return watcher


def fired(watcher: Watcher) -> list[Event]:
    return [one for one in watcher.events if one.state == "fired"]


def codes(watcher: Watcher) -> list[str]:
    return [one.code for one in fired(watcher)]
