"""What all tests share: where the repository's data is, and one analyzer for the whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a file's tests to one worker, in order: what they compile or read for all of them is made once."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False  # long files stand in the middle, and short ones at the end
    return LoadFileScheduling(config, log)
