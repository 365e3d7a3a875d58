"""The labelled messages of ``docs/evidence/oom-causes.toml``: as labelled, or different for a reason that is written down."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.oom_causes import HARD, row_of
from oortriage.api import Analyzer
from tests.conftest import ROOT

EVIDENCE = ROOT / "docs" / "evidence"


@pytest.fixture(scope="module")
def rows(analyzer: Analyzer) -> list[dict[str, Any]]:
    reports = msgspec.toml.decode((EVIDENCE / "oom-causes.toml").read_bytes())["report"]
    return [row_of(report, analyzer) for report in reports]


def test_every_message_is_judged_as_labelled_or_for_a_reason(rows: list[dict[str, Any]]) -> None:
    assert [row["report"] for row in rows if not row["right"] and not row["reason"]] == []
    assert [row["report"] for row in rows if row["right"] and row["reason"]] == []


def test_the_cases_that_one_sided_tests_get_wrong_come_out_right(rows: list[dict[str, Any]]) -> None:
    names = [name for group in HARD.values() for name in group]
    hard = [row for row in rows if (row["url"] or row["report"]).endswith(tuple(names))]
    assert len(hard) == len(names) == 7
    assert [row["report"] for row in hard if not row["right"]] == []


def test_no_cause_is_said_that_nobody_labelled_it_with_but_a_plain_shortage(rows: list[dict[str, Any]]) -> None:
    """A special cause, with its special remedies, is wrong at most once; what cannot be told is a plain shortage."""
    wrong = [row["said"] for row in rows if not row["right"] and row["said"] not in ("capacity", "none")]
    assert sorted(wrong) == ["exceeds_card", "exceeds_card", "other_process", "weights_do_not_fit"]


def test_the_written_evidence_is_what_the_program_says(rows: list[dict[str, Any]]) -> None:
    assert msgspec.json.decode((EVIDENCE / "oom-causes.json").read_bytes()) == rows
