"""The labelled cases: the scores the project promises, and what their confidence is worth."""

from __future__ import annotations

import pytest

from oortriage.scoring.case import load_cases
from oortriage.scoring.score import RESOURCE_ACCURACY, Score, score_cases
from oortriage.scoring.table import as_text
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def score() -> Score:
    return score_cases(load_cases(ROOT / "fixtures"))


def test_there_are_enough_cases(score: Score) -> None:
    assert len(score.verdicts) >= 150


def test_resource_accuracy(score: Score) -> None:
    assert score.accuracy >= RESOURCE_ACCURACY, as_text(score)


def test_no_false_shared_memory(score: Score) -> None:
    assert [one.case.name for one in score.false_shared_memory] == []


def test_no_false_alarm(score: Score) -> None:
    assert [one.case.name for one in score.false_alarms] == []


def test_confidence_means_something(score: Score) -> None:
    """Verdicts given 0.9 or more are right at least nine times in ten; the table is printed."""
    print(as_text(score))  # noqa: T201
    sure = [one for one in score.verdicts if one.diagnosis.confidence >= 0.9]
    assert len(sure) >= 50
    assert sum(one.resource_right for one in sure) >= 0.9 * len(sure)


def test_every_case_is_as_labelled(score: Score) -> None:
    """Beyond the resource: cause, phase, root line, figures and facts of every case."""
    wrong = {one.case.name: one.problems for one in score.verdicts if one.problems}
    assert wrong == {}
