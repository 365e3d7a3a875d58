"""A watched run for people and for scripts: event lines, status lines, a live table, the end; text says no more."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from oortriage.report.escape import shorten, visible
from oortriage.watch.rules import RULES
from oortriage.watch.sample import EngineLoad
from oortriage.watch.summary import Row, Summary
from oortriage.watch.view import Finding
from oortriage.watch.watcher import Event
from oortriage.watch.words import duration, interval, rate, size

_TREND_WORDS = {
    "young": "not yet a window",
    "flat": "flat",
    "steady": "grows steadily",
    "slowing": "grows ever slower",
    "settled": "grew and settled",
    "uneven": "changes in jumps",
    "shrinking": "shrinks",
}
_SCOPE_WORDS = {"device": "GPU", "process": "device memory", "host": "main memory", "group": "control group"}


def watch_schema() -> dict[str, Any]:
    """Return the JSON Schema of a run's summary."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage watch, version 1",
        **msgspec.json.schema(Summary),
    }


def summary_report(summary: Summary, name: str) -> str:
    """Render the end of a run as ``text`` or ``json``."""
    if name == "json":
        return json.dumps(msgspec.to_builtins(summary), indent=2) + "\n"
    lines = []
    if summary.started_s is not None and summary.ended_s is not None:
        cost = summary.cost.ms_per_sample
        spent = f", {cost:.1f} ms of processor time each" if cost is not None else ""
        lines.append(f"{summary.samples} samples in {duration(summary.ended_s - summary.started_s)}{spent}")
    lines += [f"  {one}" for one in map(row_line, summary.rows)]
    if summary.engine:
        lines.append(f"  {engine_line(summary.engine)}")
    lines += [event_line(one) for one in summary.events]
    if not summary.events:
        lines.append("nothing fired")
    lines += [f"note: {note}" for note in summary.notes]
    return "".join(f"{visible(line)}\n" for line in lines)


def event_line(event: Event) -> str:
    """Return an alarm as one line, with the time of day."""
    what = "ALERT" if event.state == "fired" else "clear"
    return visible(f"{clock(event.time_s)} {what} {event.code} {event.message}")


def status_line(time_s: float, rows: Iterable[Row], engine: EngineLoad | None, findings: Sequence[Finding]) -> str:
    """Return a sample as one line."""
    parts = []
    for one in rows:
        if one.scope == "device":
            whole = f"/{size(one.limit_bytes)}" if one.limit_bytes else ""
            parts.append(f"GPU {one.gpu} {size(one.now_bytes)}{whole}")
        elif one.scope == "process":
            parts.append(f"pid {one.pid} {shorten(one.name, 16)} {size(one.now_bytes)} {_slope(one)}")
        elif one.scope == "host":
            parts.append(f"pid {one.pid} host {size(one.now_bytes)} {_slope(one)}")
        else:
            parts.append(f"{shorten(one.name, 24)} {size(one.now_bytes)}/{size(one.limit_bytes or 0)}")
    if engine:
        parts.append(engine_line(engine))
    codes = sorted({one.code for one in findings})
    if codes:
        parts.append(f"firing: {' '.join(codes)}")
    return visible(f"{clock(time_s)} " + ("; ".join(parts) or "nothing could be read"))


def row_line(one: Row) -> str:
    """Return a quantity's whole story as one line."""
    if one.scope == "device":
        subject = f"GPU {one.gpu}{f' ({one.name})' if one.name else ''}"
    elif one.scope == "group":
        subject = f"control group {one.name}"
    else:
        where = f" on GPU {one.gpu}" if one.gpu else ""
        subject = f"{_SCOPE_WORDS[one.scope]} of {one.pid}{f' ({one.name})' if one.name else ''}{where}"
    limit = f" of {size(one.limit_bytes)}" if one.limit_bytes and one.scope in ("device", "group") else ""
    ended = ", gone" if one.ended else ""
    seen = f" ({size(one.lowest_bytes)} to {size(one.highest_bytes)})" if one.lowest_bytes != one.highest_bytes else ""
    return f"{subject}: {size(one.now_bytes)}{limit}{seen}, {_told(one)}{ended}"


def _told(one: Row) -> str:
    trend = one.trend
    words = _TREND_WORDS[trend.kind]
    if trend.kind == "steady":
        full = f", full in {duration(one.full_in_s)}" if one.full_in_s is not None else ""
        return f"{words}: {rate(trend.slope)} ({interval(trend.low, trend.high)}) over {duration(trend.span_s)}{full}"
    if trend.kind == "slowing" and trend.ends_at_bytes is not None:
        return f"{words}, towards {size(trend.ends_at_bytes)}"
    return words


def _slope(one: Row) -> str:
    return (
        rate(one.trend.slope) if one.trend.kind in ("steady", "slowing", "shrinking") else _TREND_WORDS[one.trend.kind]
    )


def engine_line(engine: EngineLoad) -> str:
    """Return what vLLM says of itself as a clause."""
    if engine.problem:
        return engine.problem
    parts = []
    if engine.kv_usage is not None:
        parts.append(f"KV cache {engine.kv_usage:.0%}")
    for name, value in (("running", engine.running), ("waiting", engine.waiting), ("preemptions", engine.preemptions)):
        if value is not None:
            parts.append(f"{value:.0f} {name}")
    return ", ".join(parts) or "the endpoint gave no figures"


def rule_lines() -> str:
    """List the rules: code, title, meaning."""
    return "".join(f"{rule.CODE}  {rule.TITLE}\n       {rule.MEANING}\n" for rule in RULES)


def live_table(
    time_s: float, rows: Iterable[Row], engine: EngineLoad | None, findings: Sequence[Finding], events: Sequence[Event]
) -> Any:
    """Return the screen of a live run, as something rich can draw."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("what", "now", "of", "a minute", "95 % interval", "trend", "full in"):
        table.add_column(
            name, justify="left" if name in ("what", "trend") else "right", no_wrap=True, overflow="ellipsis"
        )
    for one in rows:
        trend = one.trend
        judged = trend.kind not in ("young", "flat")
        what = {
            "device": f"GPU {one.gpu} {one.name}",
            "process": f"  {one.pid} {one.name}",
            "host": f"{one.pid} {one.name}, main memory",
            "group": one.name,
        }[one.scope]
        table.add_row(
            Text(visible(shorten(what, 40))),
            size(one.now_bytes),
            size(one.limit_bytes) if one.limit_bytes and one.scope != "process" else "",
            rate(trend.slope) if judged else "",
            interval(trend.low, trend.high).removesuffix("/min") if judged else "",
            Text(_TREND_WORDS[trend.kind], style="bold red" if trend.kind == "steady" else ""),
            duration(one.full_in_s) if one.full_in_s is not None else "",
        )
    below = [Text(f"vLLM: {visible(engine_line(engine))}")] if engine else []
    below += [Text(visible(f"{one.code} {one.message}"), style="bold red") for one in findings]
    over = [one for one in events if one.state == "cleared"][-3:]
    below += [Text(event_line(one), style="dim") for one in over]
    return Group(Text(f"oortriage watch, {clock(time_s)}; Ctrl-C ends it", style="dim"), table, *below)


def clock(time_s: float) -> str:
    """Return a time of day, in this machine's zone."""
    try:
        return time.strftime("%H:%M:%S", time.localtime(time_s))
    except (OverflowError, ValueError, OSError):
        return "??:??:??"
