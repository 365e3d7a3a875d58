"""Logs whose lines are JSON objects: the message taken out, with level, time and source."""

from __future__ import annotations

from typing import Any

import msgspec

_MESSAGES = ("message", "msg", "log", "textPayload", "MESSAGE", "event", "line", "body", "text", "@message")
_LEVELS = ("level", "severity", "levelname", "lvl", "PRIORITY")
_TIMES = ("time", "ts", "timestamp", "@timestamp", "asctime", "__REALTIME_TIMESTAMP")
_SOURCES = ("container", "container_name", "pod", "pod_name", "worker", "service", "hostname", "host", "logger", "name")
#: Longest line that is tried: a JSON log line is short, a JSON document on one line is not a log.
_LONGEST = 1 << 20


class Unpacked(msgspec.Struct, frozen=True):
    """The parts of one JSON log line; ``offset`` is where the message begins in the line."""

    message: str
    offset: int
    level: str = ""
    time: str = ""
    source: str = ""


def unpack(text: str) -> Unpacked | None:
    """Take the message out of a JSON log line; None for any other line."""
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or len(text) > _LONGEST:
        return None
    try:
        fields = msgspec.json.decode(stripped)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    name = next((key for key in _MESSAGES if isinstance(fields.get(key), str) and fields[key]), "")
    trace = next(
        (
            fields[key]
            for key in ("exception", "traceback", "stack_trace", "exc_info", "error")
            if isinstance(fields.get(key), str)
        ),
        "",
    )
    if not name and not trace:
        return None
    message = "\n".join(part for part in (fields[name] if name else "", trace) if part)
    found = text.find(f'"{name}"') if name else 0
    offset = text.find('"', text.find(":", found) + 1) + 1 if found >= 0 else 0
    return Unpacked(
        message.rstrip("\n"),
        max(0, offset),
        _text(fields, _LEVELS).upper(),
        _text(fields, _TIMES),
        _text(fields, _SOURCES),
    )


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    value = next((fields[name] for name in names if isinstance(fields.get(name), str | int)), "")
    return str(value)[:64]
