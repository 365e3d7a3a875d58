"""What a sample of ``oortriage watch`` costs in processor time, and how fast a recording replays.

``python benchmarks/watch_cost.py``: half an hour at the default interval (5 s), the time made up, on a driver that answers at
once (so the driver's own calls are not in it; ``benchmarks/watch_on_card.py`` times those on a card) and on this
machine's /proc. Everything on: recording, table, exporter.
"""

# ruff: noqa: D102, N802 (the stand-in answers under NVML's names)

from __future__ import annotations

import contextlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oortriage.watch.exporter import Exporter
from oortriage.watch.loop import Stop, replay
from oortriage.watch.recording import Recorder, Recording
from oortriage.watch.sample import Settings
from oortriage.watch.sources.host import HostSource
from oortriage.watch.sources.nvml import NvmlSource, open_nvml
from oortriage.watch.sources.sampler import Sampler
from oortriage.watch.table_file import TableFile
from oortriage.watch.watcher import Watcher

GIB = 1 << 30


class Driver:
    """Answers like NVML: every process holds some GiB, a few MiB more or less each time."""

    def __init__(self, cards: int, pids: list[int]) -> None:
        self._cards, self._pids, self._source = cards, pids, random.Random(1)

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return self._cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, _handle: int) -> Any:
        used = 70 * GIB + self._source.randrange(64 << 20)
        return SimpleNamespace(total=80 * GIB, used=used, free=80 * GIB - used)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        mine = self._pids[handle :: self._cards]
        return [SimpleNamespace(pid=pid, usedGpuMemory=9 * GIB + self._source.randrange(64 << 20)) for pid in mine]


def measure(cards: int, processes: int) -> tuple[float, float, float, float, float]:
    """Return milliseconds of reading, judging and writing a sample, the replay's samples a second, bytes a sample."""
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(processes)]
    now = [1000.0]
    try:
        source = open_nvml([], Driver(cards, [one.pid for one in children]))
        assert isinstance(source, NvmlSource)
        sampler = Sampler(source, HostSource(), None, [], clock=lambda: now[0])
        reading = judging = writing = 0.0
        count = 360
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as closing:
            path = Path(name) / "r.jsonl"
            settings = Settings()
            watcher = Watcher(settings)
            recorder = Recorder(path, 1 << 30, settings)
            outputs = [recorder, TableFile(Path(name) / "t.csv", 1 << 30), Exporter("127.0.0.1", 0)]
            for one in outputs:
                closing.callback(one.close)
            for _ in range(count):
                now[0] += settings.interval_s
                begin = time.process_time()
                sample = sampler.read()
                read = time.process_time()
                events = watcher.feed(sample)
                judged = time.process_time()
                for one in outputs:
                    one.show(sample, events, watcher)
                reading, judging, writing = (
                    reading + read - begin,
                    judging + judged - read,
                    writing + time.process_time() - judged,
                )
            recording = Recording(path)
            begin = time.process_time()
            replay(recording, Watcher(settings), [], Stop())
            took = time.process_time() - begin
            return (
                reading / count * 1000,
                judging / count * 1000,
                writing / count * 1000,
                count / took,
                path.stat().st_size / count,
            )
    finally:
        for one in children:
            one.terminate()
            one.wait()


def main() -> None:
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(
        "| cards | processes | reading | judging | writing | of a core, at 5 s | bytes a sample | replayed a second |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for cards, processes in ((1, 1), (1, 4), (8, 8), (8, 32)):
        reading, judging, writing, speed, size = measure(cards, processes)
        share = (reading + judging + writing) / 5000
        print(
            f"| {cards} | {processes} | {reading:.2f} ms | {judging:.2f} ms | {writing:.2f} ms | {share:.2%} "
            f"| {size:,.0f} | {speed:,.0f} |"
        )
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
