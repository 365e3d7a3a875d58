"""What a run shows while it goes on: a table that is drawn anew on a terminal, lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from oortriage.cli.output import Color, Sink, complain, style_for
from oortriage.report.watch import event_line, live_table, status_line
from oortriage.watch.sample import Sample
from oortriage.watch.summary import row
from oortriage.watch.watcher import Event, Watcher

if TYPE_CHECKING:
    from typing_extensions import Self


class Silent:
    """Shows nothing: a replay is over before anybody could read it."""

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing."""

    def show(self, sample: Sample, events: Sequence[Event], watcher: Watcher) -> None:
        """Show nothing."""


class Lines(Silent):
    """A line a sample, and a line an alarm as soon as it begins or ends."""

    def __init__(self, *, quiet: bool) -> None:
        """``quiet`` leaves the samples out."""
        self._sink, self._quiet = Sink(), quiet

    def show(self, sample: Sample, events: Sequence[Event], watcher: Watcher) -> None:
        """Print to standard output."""
        if not self._quiet:
            rows = [row(one) for _, one in sorted(watcher.view.watched.items())]
            self._sink.put(status_line(sample.time_s, rows, sample.engine, watcher.firing()) + "\n")
        for event in events:
            self._sink.put(event_line(event) + "\n")


class Alerts(Silent):
    """Alarms on standard error: standard output is one JSON document."""

    def show(self, _sample: Sample, events: Sequence[Event], _watcher: Watcher) -> None:
        """Print alarms."""
        for event in events:
            complain(event_line(event))


class Table(Silent):
    """A table on a terminal."""

    def __init__(self, *, color: bool) -> None:
        """Draw nothing yet."""
        from rich.console import Console
        from rich.live import Live

        console = Console(no_color=not color, highlight=False)
        self._live: Any = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        """Take the terminal."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the terminal back, without the table: the end of the run says it all."""
        self._live.stop()

    def show(self, sample: Sample, _events: Sequence[Event], watcher: Watcher) -> None:
        """Draw the table anew."""
        rows = [row(one) for _, one in sorted(watcher.view.watched.items())]
        table = live_table(sample.time_s, rows, sample.engine, watcher.firing(), watcher.events)
        self._live.update(table, refresh=True)


def open_screen(color: Color, output: Path | None, *, json: bool, quiet: bool) -> Silent:
    """Choose: a table on a terminal, lines elsewhere; with JSON on standard output only alarms, on standard error."""
    if json and output is None:
        return Alerts()
    if quiet or not sys.stdout.isatty():
        return Lines(quiet=quiet)
    return Table(color=style_for(color, None).color)
