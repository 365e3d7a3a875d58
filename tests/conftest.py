"""What all tests share: where the repository's data is, and one analyzer for the whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.api import Analyzer, default_analyzer

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def analyzer() -> Analyzer:
    return default_analyzer()


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return ROOT / "fixtures"
