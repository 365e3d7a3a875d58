"""One engine run: what its processes are given, and how every way to end is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from oortriage.api import default_analyzer
from oortriage.fix.engine.run import PROMPTS, TOKENS, EngineAsk, EngineRun, run_engine
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.triage.diagnosis import Diagnosis
from tests.fix.engine.fake import fake_vllm

T4 = Card(Target("cuda", 75, 32), 65_536, "T4")


def read(log: Path) -> Diagnosis:
    return default_analyzer().file(log, name="engine.log")


def ran(tmp_path: Path, tile: int, seconds: float = 120, **named: object) -> EngineRun:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    tree = fake_vllm(tmp_path, tile)
    wanted = {"form": "control", "processes": "one", "python": sys.executable, "paths": (str(tree),), "plays": T4}
    return run_engine(EngineAsk(**{**wanted, **named}), read, seconds=seconds)


def test_the_original_fails_with_the_first_request(tmp_path: Path) -> None:
    found = ran(tmp_path, 32)
    assert (found.status, found.stage, found.exit_code) == ("out_of_resources", "request", 1)
    assert (found.required_bytes, found.limit_bytes, found.code) == (81_920, 65_536, "SM101")
    assert found.fingerprint.startswith("v1-")
    assert not found.whole


def test_another_file_generates(tmp_path: Path) -> None:
    found = ran(tmp_path, 16, form="file")
    assert found.whole, found
    assert found.tokens == [[length] * TOKENS for length in PROMPTS]
    assert found.reporting == {}


def test_by_plugin_every_process_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "another")  # it would keep ours out: not handed on
    found = ran(tmp_path, 32, form="plugin", rule="tile16", processes="worker", plays=None)
    assert found.whole, found
    assert set(found.reporting) == {"front end", "EngineCore", "VllmWorker-0"}
    assert len(set(found.reporting.values())) == 3


def test_without_a_part_to_play_the_card_is_itself(tmp_path: Path) -> None:
    assert ran(tmp_path, 32, plays=None).whole


def test_too_few_tokens_are_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM_TOKENS", "7")
    found = ran(tmp_path, 16, plays=None)
    assert (found.whole, found.status) == (False, "failed")


def test_a_hang_ends_with_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VLLM_HANGS", "1")
    found = ran(tmp_path, 16, seconds=8, plays=None)
    assert (found.status, found.stage, found.exit_code) == ("timed_out", "request", None)


def test_no_vllm_is_a_failed_import(tmp_path: Path) -> None:
    found = run_engine(EngineAsk("control", "one", sys.executable, (str(tmp_path),)), read, seconds=60)
    assert (found.status, found.stage) == ("failed", "import")
    assert "vllm" in found.detail


def test_the_log_is_kept_where_wanted(tmp_path: Path) -> None:
    ask = EngineAsk("file", "one", sys.executable, (str(tmp_path),))
    run_engine(ask, read, logs=tmp_path / "logs")
    assert "No module named 'vllm'" in (tmp_path / "logs" / "file-one.log").read_text()


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    ran(tmp_path, 16, plays=None)
    assert not list(temporary.iterdir())
