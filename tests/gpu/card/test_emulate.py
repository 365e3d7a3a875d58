"""A newer card plays an older one: target forced, text handed to the driver, limit enforced, all restored."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytest.importorskip("triton")
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/gpu/card/on_a_stub.py"), str(tmp_path_factory.mktemp("cache"))],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_fits_is_loaded_as_text_for_the_older_target(played: dict) -> None:
    fits = played["results"][0]
    assert fits["ran"] == 49_152
    assert fits["loaded"] == {"name": "attention", "target": "sm_75", "end": 0, "shared": 49_152, "launched": True}


def test_what_does_not_fit_is_refused_with_the_older_cards_limit(played: dict) -> None:
    assert played["results"][1] == {"error": "OutOfResources", "required": 81_920, "limit": 65_536}


def test_the_driver_is_put_back(played: dict) -> None:
    assert played["restored"]
    assert played["limit"] == 232_448


def test_a_kernel_without_data_is_loaded_and_not_launched(played: dict) -> None:
    refused, taken = played["results"][2:]
    assert refused == {"error": "OutOfResources", "required": 81_920, "limit": 65_536}
    assert taken == {"loaded": 49_152, "launched": False}
