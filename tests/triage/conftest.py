"""Fixtures of the triage tests."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer
from oortriage.evidence.matcher import Matcher


@pytest.fixture(scope="session")
def matcher(analyzer: Analyzer) -> Matcher:
    return analyzer.matcher
