"""The engine layer in a verification: what replaces what, and what it does to the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oortriage.errors import UsageError
from oortriage.fix.engine import layer
from oortriage.fix.engine.check import EngineCheck, EngineSpec
from oortriage.fix.engine.layer import with_engine
from oortriage.fix.rules import find_rule
from oortriage.fix.source_patch import apply
from oortriage.fix.tree import find_tree
from oortriage.fix.verify import SCHEMA_VERSION, Layer, Verification
from oortriage.report.patch import verification_text
from tests.fix.engine.test_check import CONTROL, FILE, T4
from tests.fix.real import real_tree

PASSED = EngineCheck(True, "it generates", [CONTROL, FILE])


def verification(by: str = "file", *, applied: bool = False) -> Verification:
    states = [
        ("policy", "passed"),
        ("bytes", "passed"),
        ("kernel", "not_run"),
        ("engine", "not_run"),
        ("cost", "not_run"),
    ]
    layers = [Layer(name, status, "") for name, status in states]  # type: ignore[arg-type]
    return Verification(SCHEMA_VERSION, "tile16", "vLLM", "0.17.1", applied, True, layers, by=by)  # type: ignore[arg-type]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    asked: list[tuple[Any, ...]] = []

    def check(_tree: Any, _rule: Any, control: Any, fixed: Any, *_: Any, **__: Any) -> EngineCheck:
        asked.append((control, fixed))
        return PASSED

    monkeypatch.setattr(layer, "check_engine", check)
    return asked


def files(one: Any) -> str:
    return Path(one.location, "vllm/v1/attention/ops/triton_unified_attention.py").read_text()


@pytest.mark.index
@pytest.mark.parametrize("applied", [False, True])
def test_original_and_patched_file_are_run(tmp_path: Path, checked: list[tuple[Any, ...]], applied: bool) -> None:
    tree = find_tree(real_tree("0.17.1", tmp_path))
    original = (tmp_path / "vllm/v1/attention/ops/triton_unified_attention.py").read_text()
    if applied:
        apply(tree, find_rule("tile16"))
    found = with_engine(verification(applied=applied), tree, find_rule("tile16"), EngineSpec(T4), lambda _: None)  # type: ignore[arg-type,return-value]
    (control, fixed) = checked[0]
    assert files(control) == original
    assert files(fixed) != original
    assert "16" in files(fixed).replace(original, "")
    assert found.verified
    assert [one.status for one in found.layers] == ["passed", "passed", "not_run", "passed", "not_run"]
    text = verification_text(found)
    assert "control, one: 81,920 of 65,536 bytes, stage request" in text
    assert "file, one: [32, 32] tokens" in text


@pytest.mark.index
def test_by_plugin_only_the_original_is(tmp_path: Path, checked: list[tuple[Any, ...]]) -> None:
    tree = find_tree(real_tree("0.17.1", tmp_path))
    with_engine(verification("plugin"), tree, find_rule("fittile"), EngineSpec(T4), lambda _: None)  # type: ignore[arg-type,return-value]
    assert checked[0][1] is None


@pytest.mark.index
def test_a_failed_engine_is_a_failed_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "check_engine", lambda *_, **__: EngineCheck(False, "it does not", [CONTROL]))
    tree = find_tree(real_tree("0.17.1", tmp_path))
    found = with_engine(verification("plugin"), tree, find_rule("tile16"), EngineSpec(T4), lambda _: None)  # type: ignore[arg-type,return-value]
    assert (found.verified, found.exit_code, found.layers[3].status) == (False, 1, "failed")


@pytest.mark.index
def test_without_a_card_it_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> EngineCheck:
        raise UsageError("no card")

    monkeypatch.setattr(layer, "check_engine", none)
    tree = find_tree(real_tree("0.17.1", tmp_path))
    found = with_engine(verification("plugin"), tree, find_rule("tile16"), EngineSpec(T4), lambda _: None)  # type: ignore[arg-type,return-value]
    assert (found.verified, found.layers[3].status) == (True, "not_run")
    assert "no card" in found.layers[3].detail
