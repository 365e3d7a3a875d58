"""The loop: a sample every interval until the time is over or a signal comes; and the same over a recording."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Protocol

import msgspec

from oortriage.watch.recording import Recording
from oortriage.watch.sample import Sample
from oortriage.watch.sources.sampler import Sampler
from oortriage.watch.watcher import Event, Watcher


class Output(Protocol):
    """Whoever is shown each sample: a file, the exporter, the screen."""

    def show(self, sample: Sample, events: Sequence[Event], watcher: Watcher) -> None:
        """Take a sample and the alarms that began or ended with it."""


class Stop:
    """Set by SIGINT, SIGTERM or whoever wants the loop to end; the wait between samples ends with it."""

    def __init__(self) -> None:
        """Nothing asked for yet."""
        self._event = threading.Event()
        self.signalled = False

    def set(self, *, signalled: bool = False) -> None:
        """Ask the loop to end after the sample it is at."""
        self.signalled = self.signalled or signalled
        self._event.set()

    @property
    def is_set(self) -> bool:
        """Whether the end was asked for."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until asked to end; say which."""
        return self._event.wait(seconds)

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM set it; a second one does what it always did."""
        before: dict[int, Any] = {}

        def asked(number: int, _frame: FrameType | None) -> None:
            signal.signal(number, before[number])
            self.set(signalled=True)

        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.getsignal(number)
            signal.signal(number, asked)
        try:
            yield
        finally:
            for caught, handler in before.items():
                signal.signal(caught, handler)


def run(
    sampler: Sampler,
    watcher: Watcher,
    outputs: Sequence[Output],
    stop: Stop,
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Sample at a fixed beat until ``seconds`` are over or ``stop`` is set; a beat that was missed is left out."""
    interval = watcher.view.settings.interval_s
    begin = clock()
    beat = 0
    while not stop.is_set:
        _step(sampler.read(), watcher, outputs)
        beat = max(beat + 1, int((clock() - begin) / interval))
        due = begin + beat * interval
        if seconds is not None and due - begin > seconds:
            stop.wait(max(0.0, begin + seconds - clock()))
            return
        stop.wait(max(0.0, due - clock()))


def replay(recording: Recording, watcher: Watcher, outputs: Sequence[Output], stop: Stop) -> None:
    """Feed a recording through the same rules, as fast as it reads."""
    # Other processes asked for than when it was recorded: then nobody knows their children.
    other = watcher.view.settings.pids != recording.header.settings.pids
    for sample in recording.samples():
        if stop.is_set:
            return
        _step(msgspec.structs.replace(sample, family=()) if other else sample, watcher, outputs)


def _step(sample: Sample, watcher: Watcher, outputs: Sequence[Output]) -> None:
    events = watcher.feed(sample)
    for output in outputs:
        output.show(sample, events, watcher)
