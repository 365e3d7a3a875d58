"""Samples in, events out: series, trends, rules, and what fires after how many times. No clock, no input or output."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from oortriage.watch.rules import RULES
from oortriage.watch.sample import DeviceMemory, GroupMemory, Sample, Settings
from oortriage.watch.series import LONG, Series
from oortriage.watch.trend import join, judge_points
from oortriage.watch.view import Finding, Key, View, Watched

#: A finding must hold in so many judgements in a row to fire, and be absent in so many to be over.
RAISE_AFTER, CLEAR_AFTER = 6, 6
#: Of a window's rise, growth must lie above everything before it.
_ABOVE = 0.4
#: Facts that a single reading proves.
_AT_ONCE = ("WH304",)
#: Different complaints of the sources that are kept.
_MOST_PROBLEMS = 20
#: More series than any machine has; a recording from elsewhere cannot fill the memory.
_MOST_SERIES = 4096


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="event"):
    """An alarm that began or ended. ``numbers`` as in :class:`Finding`: those of the moment it fired, or of the end."""

    time_s: float
    state: Literal["fired", "cleared"]
    code: str
    subject: str
    message: str
    numbers: dict[str, float]
    gpu: str = ""
    pid: int | None = None


class _Alarm:
    """Hysteresis of one finding."""

    def __init__(self) -> None:
        self.held = self.absent = 0
        self.fired = False


class Watcher:
    """Takes samples in order of time and says what fires. ``events`` are all so far; ``view`` is what rules see.

    ``ended`` holds what is no longer read: processes that are gone.
    ``problems`` counts in how many samples a source complained of what.
    """

    def __init__(self, settings: Settings) -> None:
        """Start with nothing seen."""
        self.view = View(settings)
        self.events: list[Event] = []
        self.samples = 0
        self.dropped = 0
        self.first_s: float | None = None
        self._alarms: dict[tuple[str, str], _Alarm] = {}
        self._findings: dict[tuple[str, str], Finding] = {}
        self._judged_until: float | None = None
        self._judgements = 0
        self._kills: dict[str, float] = {}
        self.problems: dict[str, int] = {}
        self.ended: deque[Watched] = deque(maxlen=_MOST_SERIES)

    def firing(self) -> list[Finding]:
        """Return what fires now, in its latest words."""
        return [self._findings[key] for key, alarm in sorted(self._alarms.items()) if alarm.fired]

    def feed(self, sample: Sample) -> list[Event]:
        """Take a sample; return alarms that began or ended with it. A sample out of order is dropped and counted."""
        view = self.view
        if self.first_s is None:
            self.first_s = sample.time_s
        elif sample.time_s <= view.now:
            self.dropped += 1
            return []
        view.now = sample.time_s
        self.samples += 1
        self._take(sample)
        step = view.settings.bin_s
        if self._judged_until is not None and sample.time_s < self._judged_until:
            return []
        self._judged_until = (sample.time_s // step + 1) * step
        return self._judge()

    def _take(self, sample: Sample) -> None:
        view = self.view
        complaints = (*sample.problems, *([sample.engine.problem] if sample.engine and sample.engine.problem else []))
        for problem in complaints:
            if problem in self.problems or len(self.problems) < _MOST_PROBLEMS:
                self.problems[problem] = self.problems.get(problem, 0) + 1
        asked = {*view.settings.pids, *sample.family} if view.settings.pids else None
        for device in sample.devices:
            self._take_device(device, asked)
        for host in sample.hosts:
            if host.anonymous_bytes is None:
                continue
            kept = self._keep(Key("host", pid=host.pid), host.anonymous_bytes, host.name)
            group = next((one for one in sample.groups if one.path == host.group), None)
            if kept and group:
                kept.limit_bytes, kept.left_bytes = group.limit_bytes, _left(group)
        for group in sample.groups:
            self._take_group(group)
        if sample.engine is not None:
            view.engine.append((view.now, sample.engine))
            while view.engine and view.engine[0][0] < view.now - view.settings.lookback_s:
                view.engine.popleft()

    def _take_device(self, device: DeviceMemory, asked: set[int] | None) -> None:
        if device.used_bytes is not None:
            kept = self._keep(Key("device", device.label), device.used_bytes, device.name)
            if kept:
                kept.limit_bytes, kept.left_bytes = device.total_bytes, device.free_bytes
        for process in device.processes:
            if process.used_bytes is None:
                continue
            kept = self._keep(Key("process", device.label, process.pid), process.used_bytes, process.name)
            if kept:
                kept.limit_bytes, kept.left_bytes = device.total_bytes, device.free_bytes
                kept.asked_for = asked is None or process.pid in asked

    def _take_group(self, group: GroupMemory) -> None:
        view = self.view
        if group.working_set_bytes is not None and group.limit_bytes is not None:
            kept = self._keep(Key("group", path=group.path), group.working_set_bytes, "")
            if kept:
                kept.limit_bytes, kept.left_bytes = group.limit_bytes, _left(group)
        if len(view.groups) < _MOST_SERIES or group.path in view.groups:
            readings = view.groups.setdefault(group.path, deque())
            readings.append((view.now, group))
            while readings[0][0] < view.now - view.settings.lookback_s:
                readings.popleft()
        if group.oom_kills is not None:
            before = self._kills.get(group.path)
            if before is not None and group.oom_kills > before:
                view.oom_kills[group.path] = view.oom_kills.get(group.path, 0) + group.oom_kills - before
            if len(self._kills) < _MOST_SERIES or before is not None:
                self._kills[group.path] = group.oom_kills

    def _keep(self, key: Key, value: int, name: str) -> Watched | None:
        view = self.view
        kept = view.watched.get(key)
        if kept is None:
            if len(view.watched) >= _MOST_SERIES:
                return None
            series = Series(view.settings.window_s, view.settings.bin_s)
            kept = view.watched[key] = Watched(key, series)
        kept.name = name or kept.name
        kept.series.add(view.now, value)
        return kept

    def _judge(self) -> list[Event]:
        view, settings = self.view, self.view.settings
        for gone in [key for key, one in view.watched.items() if self._gone(one)]:
            self.ended.append(view.watched.pop(gone))
        window, floor = settings.window_s, settings.min_growth_bytes
        self._judgements += 1
        for one in view.watched.values():
            # A point of the long window takes as many bins to come.
            if self._judgements % LONG == 0:
                one.long_trend = judge_points(one.series.long(), window * LONG, floor)
            short = judge_points(one.series.short(), window, floor)
            high = short.kind != "steady" or one.series.is_high(_ABOVE * short.rise_bytes)
            one.trend = join(short, one.long_trend, window, floor, high=high)
        found = {(one.code, one.subject): one for rule in RULES for one in rule.check(view)}
        self._findings.update(found)
        events = []
        for key in sorted({*found, *self._alarms}):
            event = self._step(key, found.get(key))
            if event:
                events.append(event)
        self.events += events
        return events

    def _gone(self, one: Watched) -> bool:
        """Tell whether a process ended: nothing was read of it for three bins (and three samples)."""
        last = one.series.last
        return last is not None and self.view.now - last[0] > 3 * self.view.settings.bin_s

    def _step(self, key: tuple[str, str], finding: Finding | None) -> Event | None:
        alarm = self._alarms.setdefault(key, _Alarm())
        if finding is not None:
            alarm.held, alarm.absent = alarm.held + 1, 0
            if alarm.fired or (alarm.held < RAISE_AFTER and finding.code not in _AT_ONCE):
                return None
            alarm.fired = True
            return self._event("fired", finding)
        alarm.held, alarm.absent = 0, alarm.absent + 1
        if alarm.fired and alarm.absent < CLEAR_AFTER:
            return None
        event = self._event("cleared", self._findings[key]) if alarm.fired else None
        del self._alarms[key]
        self._findings.pop(key, None)
        return event

    def _event(self, state: Literal["fired", "cleared"], finding: Finding) -> Event:
        message = finding.message if state == "fired" else f"over: {finding.message}"
        return Event(
            self.view.now, state, finding.code, finding.subject, message, finding.numbers, finding.gpu, finding.pid
        )


def _left(group: GroupMemory) -> int | None:
    if group.limit_bytes is None or group.working_set_bytes is None:
        return None
    return max(0, group.limit_bytes - group.working_set_bytes)
