"""The layers of a verification: what passes, what fails, and what is not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.errors import OortriageError
from oortriage.fix import verify as module
from oortriage.fix.impact import Impact, card_of, facts_of, overrides, shapes
from oortriage.fix.overlay import overlay
from oortriage.fix.recognise import patched
from oortriage.fix.remedies import remedies
from oortriage.fix.rules import Decision, find_rule
from oortriage.fix.source_patch import apply
from oortriage.fix.tree import find_tree, policy_file
from oortriage.fix.verify import _bytes, _policy, truth_rows, verify
from tests.fix.real import real_tree
from tests.fix.test_source_patch import SMALL, made


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_tree.__globals__["_kept"]("0.12.0")  # from the user's cache, before it is another
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path / "cache"))


@pytest.mark.index
@pytest.mark.parametrize("rule", ["tile16", "warps2"])
def test_the_truth_table_of_a_patched_module(tmp_path: Path, rule: str) -> None:
    pytest.importorskip("torch")
    tree = find_tree(real_tree("0.12.0", tmp_path / "tree"))
    data = policy_file(tree).read_bytes()
    control, fixed = overlay(tree, data), overlay(tree, patched(data, find_rule(rule)))
    layer = _policy(find_rule(rule), control, fixed)
    assert layer.status == "passed", layer.detail
    assert layer.detail.startswith(f"{len(truth_rows())} rows")
    other = _policy(find_rule("tile16-full"), control, fixed)
    assert other.status == "failed"


def test_an_unpatched_file_is_not_verified(tmp_path: Path) -> None:
    found = verify(made(tmp_path / "site"), find_rule("tile16"))
    assert (found.exit_code, found.applied) == (1, False)
    assert [one.status for one in found.layers] == ["failed", "failed", "not_run", "not_run", "not_run"]


def test_without_a_compiler_nothing_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_version: str) -> None:
        raise OortriageError("Triton")

    monkeypatch.setattr(module, "compiler_env", missing)
    tree = made(tmp_path / "site")
    apply(tree, find_rule("tile16"))
    found = verify(tree, find_rule("tile16"))
    assert [one.name for one in found.layers] == ["policy", "bytes", "kernel", "engine", "cost"]
    assert {one.status for one in found.layers} == {"not_run"}
    assert (found.verified, found.exit_code) == (False, 1)


def row(before: int | None, after: int | None, *, changes: bool) -> Impact:
    return Impact("T4", "sm_75", "float32", 256, 0, "prefill", 65_536, before, after, 32, changes)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([row(81_920, 49_152, changes=True), row(5, 5, changes=False)], "passed"),
        ([row(81_920, 49_152, changes=True), row(5, 6, changes=False)], "failed"),
        ([row(81_920, 65_537, changes=True)], "failed"),
        ([row(5, 5, changes=False)], "failed"),  # nothing is cured
        ([row(81_920, None, changes=True)], "failed"),
    ],
)
def test_what_the_bytes_must_be(rows: list[Impact], status: str) -> None:
    assert _bytes(rows).status == status


def test_an_overlay_is_the_tree_with_one_other_file(tmp_path: Path) -> None:
    tree = made(tmp_path / "site")
    (policy_file(tree).parent / "beside.py").write_text("1")
    spec = overlay(tree, b"other")
    assert overlay(tree, b"other") == spec
    there = Path(spec.location) / policy_file(tree).relative_to(tree.root)
    assert (there.read_bytes(), (there.parent / "beside.py").read_text()) == (b"other", "1")
    assert policy_file(tree).read_bytes() == SMALL.encode()


def test_cards_and_shapes() -> None:
    t4, a10 = card_of("T4"), card_of("A10")
    assert (len(shapes(t4)), len(shapes(a10)), len(shapes(a10, wide=True))) == (16, 4, 32)
    facts = facts_of(t4, {"dtype": "float32", "head_size": 256, "window": 0, "phase": "prefill"}, 32)
    assert (facts.capability, facts.q_bytes, facts.kv_bytes, facts.limit_bytes) == ((7, 5), 4, 4, 65_536)
    assert overrides(Decision(num_warps=2)) == {"num_warps": 2}


@pytest.mark.parametrize(
    ("version", "applies"),
    [
        ("0.10.2", [False, False, True, False, True]),
        ("0.12.0", [False, True, False, True, True]),
        ("0.13.0", [True, True, False, True, True]),
        ("0.33.0", [True, False, False, True, True]),
        ("", [None, None, None, None, True]),
    ],
)
def test_remedies_by_release(version: str, applies: list[bool | None]) -> None:
    assert [one.applies for one in remedies(version, 256)] == applies
