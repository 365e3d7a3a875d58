"""When a failure happened: the time that its line or the nearest one was logged with, else the file's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Literal

import msgspec

from oortriage.intake.log import Log

Basis = Literal["log", "log_without_year", "file", "unknown"]

#: Times outside these years are counters, boot clocks or noise.
_FIRST, _LAST = datetime(2005, 1, 1, tzinfo=timezone.utc), datetime(2100, 1, 1, tzinfo=timezone.utc)
#: A file may be written a little before what is in it, as clocks and zones go.
_AHEAD = timedelta(days=2)
_ISO = re.compile(
    r"(?P<y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)"
    r"(?:[.,:]\d+)?\s?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_AMERICAN = re.compile(r"(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{4})-(?P<clock>\d\d:\d\d:\d\d)")
_SHORT = re.compile(r"(?P<m>\d\d)-(?P<d>\d\d) (?P<clock>\d\d:\d\d:\d\d)")
_SYSLOG = re.compile(r"(?P<month>[A-Z][a-z]{2}) +(?P<d>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)")
_EPOCH = re.compile(r"\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19}")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Moment(msgspec.Struct, frozen=True, order=True):
    """A point in time, to the second.

    ``time`` is ISO 8601 in UTC (a time without a zone is taken for UTC); empty when ``basis`` is ``unknown``.
    ``basis``: ``log`` the log says so, ``log_without_year`` the year is from the file, ``file`` the log has no
    date and this is when the file was changed last.
    """

    time: str
    basis: Basis


def moment_of(log: Log, line: int, modified: float | None) -> Moment:
    """Say when the line of a failure was logged.

    The line's own time counts, else the nearest one before it, else the first one after it. Without a date in the
    log it is the time of the file.

    Args:
        log: the log.
        line: 1-based number of the failure's line; 0 asks for the last time in the log.
        modified: when the file was changed, in seconds since 1970; None when there is no file.
    """
    for text in _nearest(log, line):
        if found := _read(text, modified):
            return found
    if modified is None:
        return Moment("", "unknown")
    try:
        return Moment(_written(datetime.fromtimestamp(modified, timezone.utc)), "file")
    except (OverflowError, ValueError, OSError):
        return Moment("", "unknown")


def _nearest(log: Log, line: int) -> Iterator[str]:
    """Yield times: from the failure upwards, then from it downwards."""
    lines = log.lines
    at = next((index for index, one in enumerate(lines) if one.number >= line), len(lines)) if line else len(lines)
    last = at + 1 if at < len(lines) and lines[at].number == line else at
    for one in [*reversed(lines[:last]), *lines[last:]]:
        if one.prefix.time:
            yield one.prefix.time


def _read(text: str, modified: float | None) -> Moment | None:
    """Read a logger's time; None when it holds no date, or one that cannot be."""
    if _EPOCH.fullmatch(text):
        seconds = float(text) if "." in text else int(text) / 10 ** (len(text) - 10)
        return _within(datetime.fromtimestamp(seconds, timezone.utc), "log")
    if found := _ISO.match(text) or _AMERICAN.match(text):
        return _within(_at(int(found["y"]), int(found["m"]), int(found["d"]), found["clock"], found.groupdict()), "log")
    if found := _SHORT.match(text):
        return _of_year(int(found["m"]), int(found["d"]), found["clock"], modified)
    if (found := _SYSLOG.match(text)) and found["month"] in _MONTHS:
        return _of_year(_MONTHS.index(found["month"]) + 1, int(found["d"]), found["clock"], modified)
    return None


def _of_year(month: int, day: int, clock: str, modified: float | None) -> Moment | None:
    """Take the last such day before the file was changed: 29 February may be years back."""
    if modified is None:
        return None
    changed = datetime.fromtimestamp(modified, timezone.utc)
    for year in range(changed.year + 1, changed.year - 8, -1):
        when = _at(year, month, day, clock, {})
        if when and when <= changed + _AHEAD:
            return _within(when, "log_without_year")
    return None


def _at(year: int, month: int, day: int, clock: str, groups: dict[str, str | None]) -> datetime | None:
    hour, minute, second = (int(one) for one in clock.split(":"))
    try:
        when = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone.utc)
    except ValueError:
        return None
    zone = groups.get("zone") or "Z"
    if zone == "Z":
        return when
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return when - offset if zone[0] == "+" else when + offset


def _within(when: datetime | None, basis: Basis) -> Moment | None:
    return Moment(_written(when), basis) if when and _FIRST <= when < _LAST else None


def _written(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
