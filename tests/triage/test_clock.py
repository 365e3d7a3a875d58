"""When a failure happened, out of the times that loggers write."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from oortriage.intake.line import Piece
from oortriage.intake.log import Log, build_log
from oortriage.triage.clock import Moment, moment_of

WRITTEN = datetime(2026, 1, 10, 12, tzinfo=timezone.utc).timestamp()


def log_of(*lines: str) -> Log:
    pieces = [Piece(number, 0, line) for number, line in enumerate(lines, 1)]
    return build_log("a.log", pieces, complete=True, notes=[])


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("2025-05-04 01:05:33,120 - vllm - ERROR - it broke", Moment("2025-05-04T01:05:33Z", "log")),
        ("2025-05-04T01:05:33.5+02:00 ERROR it broke", Moment("2025-05-03T23:05:33Z", "log")),
        ("[04/02/2025-18:45:45] [TRT-LLM] [E] it broke", Moment("2025-04-02T18:45:45Z", "log")),
        ("ERROR 12-29 20:16:45 [utils.py:278] it broke", Moment("2025-12-29T20:16:45Z", "log_without_year")),
        ("ERROR 01-09 20:16:45 [utils.py:278] it broke", Moment("2026-01-09T20:16:45Z", "log_without_year")),
        ("ERROR 02-29 20:16:45 [utils.py:278] it broke", Moment("2024-02-29T20:16:45Z", "log_without_year")),
        ("Nov 29 21:13:39 host kernel: it broke", Moment("2025-11-29T21:13:39Z", "log_without_year")),
        ('{"ts": 1746320733, "level": "error", "msg": "it broke"}', Moment("2025-05-04T01:05:33Z", "log")),
        ('{"ts": 1746320733120, "level": "error", "msg": "it broke"}', Moment("2025-05-04T01:05:33Z", "log")),
        ("[01:05:33] it broke", Moment("2026-01-10T12:00:00Z", "file")),
        ("1970-01-01 00:00:01 ERROR it broke", Moment("2026-01-10T12:00:00Z", "file")),
        ("2025-13-41 00:00:01 ERROR it broke", Moment("2026-01-10T12:00:00Z", "file")),
        ("it broke", Moment("2026-01-10T12:00:00Z", "file")),
    ],
)
def test_a_time_is_read_as_loggers_write_it(line: str, moment: Moment) -> None:
    assert moment_of(log_of(line), 1, WRITTEN) == moment


def test_a_bare_line_has_the_time_of_the_line_above_it() -> None:
    log = log_of("2025-05-04 01:00:00 INFO a", "bare", "2025-05-04 02:00:00 INFO b")
    assert moment_of(log, 2, WRITTEN).time == "2025-05-04T01:00:00Z"


def test_without_a_time_above_the_next_below_counts() -> None:
    assert moment_of(log_of("bare", "2025-05-04 02:00:00 INFO b"), 1, WRITTEN).time == "2025-05-04T02:00:00Z"


def test_a_log_without_a_failure_has_its_last_time() -> None:
    log = log_of("2025-05-04 01:00:00 INFO a", "2025-05-04 02:00:00 INFO b", "bare")
    assert moment_of(log, 0, WRITTEN).time == "2025-05-04T02:00:00Z"


@pytest.mark.parametrize("modified", [None, 1e300, float("nan")])
def test_no_time_at_all_is_said(modified: float | None) -> None:
    assert moment_of(log_of("bare"), 1, modified) == Moment("", "unknown")


def test_a_year_cannot_be_told_without_a_file() -> None:
    assert moment_of(log_of("ERROR 12-29 20:16:45 [utils.py:278] it broke"), 1, None).basis == "unknown"


def test_a_number_that_is_no_time_is_passed_over() -> None:
    log = log_of('{"ts": 9999999999999999999, "msg": "it broke"}')
    assert moment_of(log, 1, WRITTEN).basis == "file"
