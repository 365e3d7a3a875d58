"""A watched run in words: the end, a line a sample, the table; nothing in it acts on a terminal."""

from __future__ import annotations

import io
import json
import time

import msgspec
import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from oortriage.report.watch import event_line, live_table, rule_lines, status_line, summary_report
from oortriage.watch.sample import DeviceMemory, ProcessMemory, Sample, Settings
from oortriage.watch.summary import Summary, row, summarise
from oortriage.watch.watcher import Watcher
from tests.watch.exporting import everything
from tests.watch.made import GIB


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "UTC")
    if hasattr(time, "tzset"):
        time.tzset()
        yield
        monkeypatch.undo()
        time.tzset()
    else:
        yield


@pytest.fixture(scope="module")
def watcher() -> Watcher:
    made = Watcher(Settings())
    for sample in everything():
        made.feed(sample)
    return made


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs a zone of its own")
def test_the_end(watcher: Watcher, snapshot: SnapshotAssertion) -> None:
    assert summary_report(summarise(watcher, cpu_s=0.5, notes=["a note"]), "text") == snapshot


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs a zone of its own")
def test_a_line_a_sample(watcher: Watcher, snapshot: SnapshotAssertion) -> None:
    view = watcher.view
    rows = [row(one) for _, one in sorted(view.watched.items())]
    assert status_line(view.now, rows, view.engine[-1][1], watcher.firing()) == snapshot


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs a zone of its own")
def test_the_table(watcher: Watcher, snapshot: SnapshotAssertion) -> None:
    view = watcher.view
    rows = [row(one) for _, one in sorted(view.watched.items())]
    console = Console(file=io.StringIO(), width=140, force_terminal=False)
    console.print(live_table(view.now, rows, view.engine[-1][1], watcher.firing(), watcher.events))
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert "\n".join(lines) == snapshot


def test_the_rules(snapshot: SnapshotAssertion) -> None:
    assert rule_lines() == snapshot


def test_json_is_the_summary(watcher: Watcher) -> None:
    summary = summarise(watcher, cpu_s=0.5)
    assert msgspec.convert(json.loads(summary_report(summary, "json")), Summary) == summary


def test_names_of_devices_and_processes_are_escaped_and_no_markup() -> None:
    name = "\x1b]0;x\x07[bold red]evil[/]\u202e"
    watcher = Watcher(Settings())
    watcher.feed(Sample(1.0, (DeviceMemory("0", "", name, GIB, 5, 6, (ProcessMemory(8, name, 5),)),), problems=(name,)))
    rows = [row(one) for one in watcher.view.watched.values()]
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    console.print(live_table(1.0, rows, None, [], []))
    shown = [
        summary_report(summarise(watcher, cpu_s=0), "text"),
        status_line(1.0, rows, None, []),
        console.file.getvalue(),
    ]
    for text in shown:
        assert "\x1b]" not in text
        assert "\x07" not in text
        assert "\u202e" not in text
        assert "[bold re" in text


def test_a_time_that_no_calendar_holds_is_no_error(watcher: Watcher) -> None:
    event = msgspec.structs.replace(watcher.events[0], time_s=1e11)
    assert event.message in event_line(event)
    assert status_line(1e300, [], None, []).startswith("??:??:??")
