"""Every rule that ships: valid, linted, and right on its own samples and counter-samples."""

from __future__ import annotations

import pytest

from oortriage.evidence.check import check_samples
from oortriage.evidence.lint import lint_folder
from oortriage.evidence.loader import built_in_rules, rules_folder
from oortriage.evidence.matcher import Matcher
from oortriage.evidence.reference import describe, reference
from oortriage.evidence.rule import Rule
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(built_in_rules())


@pytest.mark.parametrize("rule", built_in_rules(), ids=lambda rule: rule.code)
def test_samples(rule: Rule, matcher: Matcher) -> None:
    assert list(check_samples(rule, matcher)) == []


def test_lint() -> None:
    assert list(lint_folder(rules_folder())) == []


def test_reference_is_up_to_date() -> None:
    path = ROOT / "docs" / "rules.md"
    assert path.read_text(encoding="utf-8") == reference(built_in_rules())


@pytest.mark.parametrize("rule", built_in_rules(), ids=lambda rule: rule.code)
def test_every_rule_can_be_explained(rule: Rule) -> None:
    page = describe(rule)
    assert rule.code in page
    assert rule.title in page
