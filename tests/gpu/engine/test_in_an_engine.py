"""The plugin in a real vLLM engine on the card that is there: reported everywhere, and never the engine's end."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from oortriage.api import default_analyzer
from oortriage.fix.engine.run import EngineAsk, Processes, run_engine
from oortriage.fix.tree import find_tree

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(find_spec("vllm") is None, reason="needs vLLM")]

#: Runs in every process of the engine, before anything else: the policy's decision raises.
INJECTED = """
import oortriage.fix.hooks as hooks

def broken(*_, **__):
    raise RuntimeError("injected")

hooks.decide = broken
"""


def ask(processes: Processes) -> EngineAsk:
    root = str(find_tree().root)
    return EngineAsk("plugin", processes, sys.executable, (root, root), rule="tile16")


def log(folder: Path, name: str) -> str:
    return (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")[-20_000:]


def test_every_process_reports_the_policy(tmp_path: Path) -> None:
    found = run_engine(ask("worker"), default_analyzer().file, logs=tmp_path)
    assert found.whole, (found, log(tmp_path, "plugin-worker"))
    assert {"front end", "EngineCore", "VllmWorker-0"} <= set(found.reporting)
    assert found.warnings == []


def test_an_exception_in_the_policy_does_not_stop_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(INJECTED, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    found = run_engine(ask("core"), default_analyzer().file, logs=tmp_path)
    assert found.whole, (found, log(tmp_path, "plugin-core"))
    assert any("the tile policy stays as it was: RuntimeError: injected" in one for one in found.warnings), found
