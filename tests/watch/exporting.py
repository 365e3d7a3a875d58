"""An exporter that has been shown everything there is to show."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from oortriage.watch.exporter import Exporter
from oortriage.watch.sample import EngineLoad, GroupMemory, Sample, Settings
from oortriage.watch.watcher import Watcher
from tests.watch.made import GIB, MIB, flat, leak, samples


def everything() -> list[Sample]:
    """Device, processes (one leaks), main memory, a group near its limit that lost a process, and a busy engine."""
    return list(
        samples(
            {7: flat(30 * GIB), 8: leak(41 * MIB)},
            14,
            interval=10,
            host={8: leak(400 * MIB, GIB)},
            group=lambda t: GroupMemory(
                "/pod",
                int(2 * GIB + t / 60 * 400 * MIB),
                int(2 * GIB + t / 60 * 400 * MIB),
                32 * GIB,
                1 if t > 60 else 0,
            ),
            engine=lambda t: EngineLoad(0.99, t // 30, 5, 3),
        )
    )


@contextmanager
def exporting(given: list[Sample], address: str = "127.0.0.1", port: int = 0) -> Iterator[Exporter]:
    exporter, watcher = Exporter(address, port), Watcher(Settings())
    try:
        for sample in given:
            exporter.show(sample, watcher.feed(sample), watcher)
        yield exporter
    finally:
        exporter.close()


def scrape(exporter: Exporter) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{exporter.port}/metrics", timeout=10) as answer:
        return answer.read().decode()
