"""A rule in force by plugin, verified: the hooked module against compilations that no hook has touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from oortriage.cli.app import app
from oortriage.errors import OortriageError
from oortriage.fix import hooked, verify_plugin
from oortriage.fix.hooked import Pair, _candidates, _expected
from oortriage.fix.impact import card_of
from oortriage.fix.probe import Launched, Row, _launched
from oortriage.fix.rules import Decision, find_rule
from oortriage.fix.source_patch import apply
from oortriage.fix.tree import find_tree
from oortriage.fix.verify import Layer, Verification
from oortriage.fix.verify_plugin import _bytes, _policy
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Compilation
from oortriage.replay.compiler_env import CompilerEnv
from tests.fix.real import FP32, real_tree
from tests.fix.test_source_patch import made

FITTILE, TILE16 = find_rule("fittile"), find_rule("tile16")
FULL = {**FP32, "window": 0, "phase": "prefill"}
SLIDING = {**FP32, "window": 1024, "phase": "decode"}  # split along the context, and joined by another kernel
NOWHERE = SourceSpec("vllm", "9.9.9", "folder", "/nowhere")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_tree.__globals__["_kept"]("0.17.1")  # from the user's cache, before it is another
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "cache"))


@pytest.mark.index
def test_the_fitting_tile_by_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    rows = {"T4": [FULL, {**FULL, "dtype": "float16"}], "A10": [SLIDING]}
    monkeypatch.setattr(hooked, "_asked", lambda _rule, card: rows[card.name])
    tree = find_tree(real_tree("0.17.1", tmp_path / "tree"))
    found = verify_plugin.verify_plugin(tree, FITTILE, cards=("T4", "A10"))
    assert [(one.name, one.status) for one in found.layers] == [
        ("policy", "passed"),
        ("bytes", "passed"),
        ("kernel", "not_run"),
        ("engine", "not_run"),
        ("cost", "not_run"),
    ], found.layers
    assert "3 launches" in found.layers[0].detail
    assert "2 changed" in found.layers[0].detail
    assert found.layers[1].detail == (
        "81,920 before, 49,152 after on sm_75 of 65,536; 116,992 before, 66,688 after on sm_86 of 101,376; "
        "1 other rows identical to the byte"
    )
    assert [one.change for one in found.impact] == ["TILE_SIZE=16", "", "TILE_SIZE=16"]
    assert (found.exit_code, found.by, found.applied) == (0, "plugin", False)
    assert "--plugin is implied" in found.notes[0]


def pair(**changes: Any) -> Pair:
    before, after = Launched(32, 4, 81_920), Launched(16, 4, 49_152)
    whole = Pair(Row(card_of("T4"), FULL), before, after, before, after, Decision(tile=16))
    return msgspec.structs.replace(whole, **changes)


def test_what_the_hooks_must_do() -> None:
    assert _policy(FITTILE, NOWHERE, [pair()]).status == "passed"
    layer = _bytes([pair(), pair(hooked=Launched(32, 4, 81_920), expected=Launched(32, 4, 81_920), decision=None)])
    assert (layer.status, layer.detail.split("; ")[1:]) == (
        "passed",
        ["1 other rows identical to the byte, 1 of them over the limit as before"],
    )


@pytest.mark.parametrize(
    ("changes", "policy", "size", "words"),
    [
        ({"hooked": Launched(32, 4, 81_920)}, "failed", "failed", "the rule says tile 16"),
        ({"hooked": Launched(8, 4, 30_000)}, "failed", "failed", "tile 8"),
        ({"expected": Launched(32, 4, 81_920), "decision": None}, "failed", "failed", "the rule says tile 32"),
        ({"hooked": Launched(16, 4, 49_153)}, "passed", "failed", ""),
        ({"plain_expected": Launched(32, 4, 81_921)}, "passed", "failed", ""),
        ({"hooked": Launched(16, 2, 49_152)}, "failed", "passed", "warps 2"),
        ({"hooked": Launched(error="no such name")}, "failed", "failed", "no such name"),
    ],
)
def test_what_they_must_not(changes: dict[str, Any], policy: str, size: str, words: str) -> None:
    layers = _policy(FITTILE, NOWHERE, [pair(**changes)]), _bytes([pair(**changes)])
    assert [one.status for one in layers] == [policy, size]
    assert words in layers[0].detail


def test_hooks_that_change_nothing_are_no_cure() -> None:
    same = Launched(None, 4, 70_000)
    table = [pair(plain=same, hooked=same, plain_expected=same, expected=same, decision=None)]
    layers = [_policy(FITTILE, NOWHERE, table), _bytes(table)]
    assert [one.status for one in layers] == ["failed", "failed"]
    assert "--block-size 16" in layers[0].detail


def test_parts_are_joined_with_the_tile_they_were_computed_with() -> None:
    attention = ("kernel_unified_attention", {"TILE_SIZE": 16, "num_warps": 4}, 66_688)
    assert _launched([attention, ("reduce_segments", {"TILE_SIZE": 16}, 0)]) == Launched(16, 4, 66_688)
    assert "joined with one of 32" in _launched([attention, ("reduce_segments", {"TILE_SIZE": 32}, 0)]).error
    assert _launched([("reduce_segments", {"TILE_SIZE": 32}, 0)]).error


def test_candidates() -> None:
    t4 = card_of("T4")
    over = Launched(64, 4, 65_537)
    assert _candidates(FITTILE, t4, FULL, over) == [Decision(tile=32), Decision(tile=16)]
    assert _candidates(FITTILE, t4, FULL, Launched(64, 4, 65_536)) == []
    assert _candidates(FITTILE, t4, {**FULL, "dtype": "float8_e5m2"}, over) == [Decision(tile=32)]
    assert _candidates(FITTILE, t4, FULL, Launched(error="does not compile")) == []
    assert _candidates(TILE16, t4, FULL, over) == [Decision(tile=16)]
    assert _candidates(TILE16, card_of("A10"), FULL, over) == []


@pytest.mark.parametrize(
    ("sizes", "tile"),
    [
        ({64: 150_000, 32: 65_536, 16: 40_000}, 32),
        ({64: 150_000, 32: 65_537, 16: 40_000}, 16),
        ({64: 150_000, 32: 90_000, 16: 66_000}, None),
        ({64: 65_536, 32: 90_000, 16: 1}, None),
    ],
)
def test_the_expected_tile_is_the_largest_that_compiles_to_fit(
    monkeypatch: pytest.MonkeyPatch, sizes: dict[int, int], tile: int | None
) -> None:
    def compiled(_what: Any, cells: list[Any], **_: Any) -> tuple[list[int], list[str]]:
        return [cell.overrides.get("TILE_SIZE", 64) for cell in cells], []

    monkeypatch.setattr(hooked, "compile_cells", compiled)
    monkeypatch.setattr(hooked, "_launched", lambda one: Launched(one, 4, sizes[one]))
    what = Compilation("vllm.unified_attention", card_of("T4"), CompilerEnv("3.6.0"), NOWHERE)
    ((before, after, decision),) = _expected(FITTILE, what, [FULL], use_cache=False)
    assert before == Launched(64, 4, sizes[64])
    assert decision == (Decision(tile=tile) if tile else None)
    assert after == (Launched(tile, 4, sizes[tile]) if tile else before)


def test_without_a_compiler_nothing_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_version: str) -> None:
        raise OortriageError("Triton")

    monkeypatch.setattr(verify_plugin, "compiler_env", missing)
    tree = made(tmp_path / "site")
    apply(tree, TILE16)
    found = verify_plugin.verify_plugin(tree, TILE16)
    assert {one.status for one in found.layers} == {"not_run"}
    assert (found.exit_code, len(found.layers)) == (1, 5)
    assert found.layers[0].detail == "needs Triton"
    assert "patched with tile16" in found.notes[-1]


@pytest.mark.parametrize("arguments", [["fittile"], ["tile16", "--plugin"]], ids=" ".join)
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    def proved(tree: Any, rule: Any, **_: Any) -> Verification:
        layers = [Layer("policy", "passed", "by hooks")]
        return Verification(1, rule.name, tree.named, "", applied=False, verified=True, layers=layers, by="plugin")

    monkeypatch.setattr(verify_plugin, "verify_plugin", proved)
    where = ["patch", "verify", "--vllm-source", str(made(tmp_path / "site").root), "--rule", *arguments]
    done = CliRunner().invoke(app, where)
    assert (done.exit_code, "by plugin in" in done.output) == (0, True)
    assert "--dry-run is for the patch of the file" in str(CliRunner().invoke(app, [*where, "--dry-run"]).exception)
