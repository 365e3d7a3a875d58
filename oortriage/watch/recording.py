"""A recording: JSON lines, each written in one call, in two files that take turns; and how it is read back.

A kill leaves at most its last line cut. ``FILE`` is the newer part, ``FILE.1`` the older one; together they stay
under the limit that was given.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from oortriage.errors import InputError, UsageError
from oortriage.version import __version__
from oortriage.watch.sample import Header, Sample, Settings
from oortriage.watch.watcher import Event

SCHEMA_VERSION = 1
LEAST_BYTES = 64 << 10
_LONGEST_LINE = 16 << 20


class RotatingFile:
    """Whole lines to a file that others may read meanwhile; a new part begins with what ``head`` gives."""

    def __init__(self, path: Path, max_bytes: int, head: Callable[[], bytes]) -> None:
        """Open the file to append to.

        Args:
            path: the file; what is in it stays, until it is turned over.
            max_bytes: for this file and the one before it together.
            head: the line a part begins with.

        Raises:
            UsageError: it cannot be written, or the limit is too small.
        """
        if max_bytes < LEAST_BYTES:
            raise UsageError(f"--max-bytes: at least {LEAST_BYTES >> 10} KiB")
        self._path, self._limit, self._head = path, max_bytes // 2, head
        self._file = -1
        self._size = 0
        self._open()

    def _open(self) -> None:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            self._size = os.lseek(self._file, 0, os.SEEK_END)
            if self._size and self._cut():
                self._write(b"\n")
            if self._size >= self._limit:
                self._turn()
            else:
                self._write(self._head())
        except OSError as problem:
            raise UsageError(f"{self._path}: cannot be written: {problem.strerror or problem}") from problem

    def _cut(self) -> bool:
        """Tell whether the last line has no end: a run before was killed while writing."""
        os.lseek(self._file, -1, os.SEEK_END)
        return os.read(self._file, 1) != b"\n"

    def write(self, line: bytes) -> None:
        """Write a line with its end, in one call.

        Raises:
            UsageError: it cannot be written: the disk is full.
        """
        try:
            if self._size + len(line) > self._limit:
                self._turn()
            self._write(line)
        except OSError as problem:
            raise UsageError(f"{self._path}: cannot be written: {problem.strerror or problem}") from problem

    def _write(self, data: bytes) -> None:
        self._size += os.write(self._file, data)

    def _turn(self) -> None:
        os.close(self._file)
        self._file = -1
        self._path.replace(older(self._path))
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        self._size = 0
        self._write(self._head())

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def older(path: Path) -> Path:
    """Return the name of the part before."""
    return path.with_name(path.name + ".1")


class Recorder:
    """Writes samples and events as JSON lines."""

    def __init__(self, path: Path, max_bytes: int, settings: Settings) -> None:
        """Begin a run.

        Raises:
            UsageError: the file cannot be written.
        """
        header = Header(SCHEMA_VERSION, secrets.token_hex(8), __version__, settings)
        self._file = RotatingFile(path, max_bytes, lambda: _line(header))

    def show(self, sample: Sample, events: Sequence[Event], _watcher: object) -> None:
        """Write a sample and the alarms that began or ended with it."""
        for item in (sample, *events):
            self._file.write(_line(item))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _line(item: object) -> bytes:
    return msgspec.json.encode(item) + b"\n"


class Recording:
    """A recording read back. ``header`` is the last run's; ``bad_lines`` counts what could not be read so far."""

    def __init__(self, path: Path) -> None:
        """Find the last run in it.

        Raises:
            InputError: it cannot be read, or is no recording.
        """
        self._paths = [one for one in (older(path), path) if one == path or one.exists()]
        self._decoder = msgspec.json.Decoder(Header | Sample | Event)
        self.bad_lines = 0
        header = None
        for item in self._items():
            if isinstance(item, Header):
                header = item
        if header is None:
            raise InputError(f"{path}: no recording of oortriage watch (no header line)")
        self.header = header
        self.bad_lines = 0

    def samples(self) -> Iterator[Sample]:
        """Give the last run's samples, in the order they were written; lines that are none are counted."""
        within = False
        for item in self._items():
            if isinstance(item, Header):
                within = item.run == self.header.run
            elif within and isinstance(item, Sample):
                yield item

    def _items(self) -> Iterator[Header | Sample | Event]:
        for path in self._paths:
            try:
                with path.open("rb") as file:
                    while line := file.readline(_LONGEST_LINE):
                        if not line.strip():
                            continue
                        try:
                            yield self._decoder.decode(line)
                        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                            self.bad_lines += 1
            except OSError as problem:
                raise InputError(f"{path}: {problem.strerror or problem}") from problem
