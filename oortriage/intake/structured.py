"""Logs whose lines are JSON objects: the message taken out, with level, time and source."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_MESSAGES = ("message", "msg", "log", "textPayload", "MESSAGE", "event", "line", "body", "text", "@message")
_TRACES = ("exception", "traceback", "stack_trace", "exc_info", "error")
_LEVELS = ("level", "severity", "levelname", "lvl", "PRIORITY")
_TIMES = ("time", "ts", "timestamp", "@timestamp", "asctime", "__REALTIME_TIMESTAMP")
_SOURCES = ("container", "container_name", "pod", "pod_name", "worker", "service", "hostname", "host", "logger", "name")
#: Longest line that is tried: a JSON log line is short, a JSON document on one line is not a log.
_LONGEST = 1 << 20
#: Reads one JSON value at a place; control characters in strings are let pass.
_STRINGS = json.JSONDecoder(strict=False)


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
    name, trace = _text_field(fields, _MESSAGES), _text_field(fields, _TRACES)
    if not name and not trace:
        return None
    message = "\n".join(fields[key] for key in (name, trace) if key)
    return Unpacked(
        message.rstrip("\n"),
        _offset(text, name or trace, fields[name or trace]),
        _text(fields, _LEVELS).upper(),
        _text(fields, _TIMES),
        _text(fields, _SOURCES),
    )


def _text_field(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((name for name in names if isinstance(fields.get(name), str) and fields[name]), "")


def _offset(text: str, key: str, value: str) -> int:
    """Find where a value begins; its key may stand in the line as a value or in a nested object too."""
    for found in re.finditer(rf'"{key}"\s*:\s*"', text):
        if _STRINGS.raw_decode(text, found.end() - 1)[0] == value:
            return found.end()
    return 0


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    value = next((fields[name] for name in names if isinstance(fields.get(name), str | int)), "")
    return str(value)[:64]
