"""The same samples as a table for spreadsheets: one row a value, in base units."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from oortriage.watch.recording import RotatingFile
from oortriage.watch.sample import Sample

COLUMNS = ("time_s", "scope", "gpu", "pid", "name", "metric", "value")
#: A cell that begins so is a formula to spreadsheets; process names are anybody's.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Cell = str | int | float


class TableFile:
    """Writes samples as CSV; a part begins with the names of the columns."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Open the file to append to.

        Raises:
            UsageError: it cannot be written.
        """
        self._file = RotatingFile(path, max_bytes, lambda: _line(COLUMNS))

    def show(self, sample: Sample, _events: object, _watcher: object) -> None:
        """Write a sample's rows, in one call."""
        self._file.write(b"".join(_line((f"{sample.time_s:.3f}", *row)) for row in rows(sample)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def rows(sample: Sample) -> Iterator[tuple[Cell, ...]]:
    """Give (scope, gpu, pid, name, metric, value) for every value that was read."""
    for device in sample.devices:
        for metric in ("total_bytes", "used_bytes", "free_bytes"):
            yield from _row("device", device.label, "", device.name, metric, getattr(device, metric))
        for process in device.processes:
            yield from _row("process", device.label, process.pid, process.name, "used_bytes", process.used_bytes)
    for host in sample.hosts:
        for metric in ("anonymous_bytes", "resident_bytes", "swap_bytes"):
            yield from _row("host", "", host.pid, host.name, metric, getattr(host, metric))
    for group in sample.groups:
        for metric in ("used_bytes", "working_set_bytes", "limit_bytes", "oom_kills"):
            yield from _row("group", "", "", group.path, metric, getattr(group, metric))
    if sample.engine:
        for metric in ("kv_usage", "preemptions", "running", "waiting"):
            yield from _row("engine", "", "", "", metric, getattr(sample.engine, metric))


def _row(scope: str, gpu: str, pid: Cell, name: str, metric: str, value: float | None) -> Iterator[tuple[Cell, ...]]:
    if value is not None:
        yield scope, gpu, pid, f"'{name}" if name.startswith(_FORMULA) else name, metric, value


def _line(cells: tuple[Cell, ...]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode("utf-8", "backslashreplace")
