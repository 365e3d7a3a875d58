"""What engine runs prove together, and what they do not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from oortriage.errors import UsageError
from oortriage.fix.engine import check
from oortriage.fix.engine.check import EngineSpec, check_engine, judge
from oortriage.fix.engine.run import PROMPTS, TOKENS, EngineAsk, EngineRun
from oortriage.fix.rules import find_rule
from oortriage.fix.tree import Tree
from oortriage.gpu.virtual.adapter import Target
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.replay.live import LocalCard

T4 = Card(Target("cuda", 75, 32), 65_536, "T4")
TILES = [[5] * TOKENS for _ in PROMPTS]
CONTROL = EngineRun(
    "control", "one", "out_of_resources", "request", 1, required_bytes=81_920, limit_bytes=65_536, fingerprint="v1-a"
)
FILE = EngineRun("file", "one", "generated", "done", 0, tokens=TILES)
PLUGIN = EngineRun("plugin", "core", "generated", "done", 0, tokens=TILES, reporting={"front end": 1, "EngineCore": 2})


def but(run: EngineRun, **changes: Any) -> EngineRun:
    return msgspec.structs.replace(run, **changes)


def test_a_failing_control_and_tokens_are_the_proof() -> None:
    passed, said = judge([CONTROL, but(CONTROL, processes="core"), FILE, PLUGIN], T4, played=True)
    assert passed
    assert "81,920 of 65,536 bytes (fingerprint v1-a, 2 runs)" in said
    assert "32 tokens for each prompt in one process and a spawned engine core; the same tokens in each" in said


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([but(FILE, form="control")], "does not fail as it should"),
        ([but(CONTROL, limit_bytes=101_376), FILE], "not at 65536"),
        ([CONTROL, but(CONTROL, required_bytes=98_304), FILE], "different ways"),
        ([CONTROL, but(CONTROL, fingerprint="v1-b"), FILE], "different ways"),
        ([CONTROL, but(FILE, tokens=[[5] * 31, [5] * 32])], "[31, 32] tokens"),
        ([CONTROL, but(FILE, status="timed_out", stage="start", exit_code=None)], "timed out at stage start"),
        ([CONTROL, but(CONTROL, form="file")], "81,920 of 65,536"),
        ([CONTROL, but(PLUGIN, reporting={"front end": 1})], "not reported by EngineCore"),
    ],
)
def test_anything_else_is_not(runs: list[EngineRun], why: str) -> None:
    passed, said = judge(runs, T4, played=True)
    assert not passed
    assert why in said


def test_other_tokens_are_said() -> None:
    _, said = judge([CONTROL, FILE, but(PLUGIN, tokens=[[6] * TOKENS for _ in PROMPTS])], T4, played=False)
    assert "NOT the same tokens" in said


Checked = Callable[..., tuple[check.EngineCheck, list[EngineAsk]]]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Checked:
    """The check over engines that answer as told, on a card of this capability."""

    def run(answer: Callable[[EngineAsk], EngineRun], capability: tuple[int, int], mode: str = "auto", **named: Any):
        asked: list[EngineAsk] = []

        def engine(one: EngineAsk, _read: Any, logs: Any) -> EngineRun:
            assert logs is None
            asked.append(one)
            return answer(one)

        monkeypatch.setattr(check, "run_engine", engine)
        monkeypatch.setattr(check, "local_card", lambda *_: LocalCard("a card", capability, 1))
        source = SourceSpec("vllm", "0.22.1", "folder", "/control")
        fixed = SourceSpec("vllm", "0.22.1", "folder", "/fixed") if named.get("file", True) else None
        tree = Tree(Path("/root"), "0.22.1", "here", named.get("python", ""))
        rule = find_rule("tile16")
        return check_engine(tree, rule, source, fixed, EngineSpec(T4, mode), lambda _: None), asked  # type: ignore[arg-type,return-value]

    return run


def good(one: EngineAsk) -> EngineRun:
    if one.form == "control":
        return but(CONTROL, processes=one.processes)
    told = {"front end": 1, "EngineCore": 2, "VllmWorker-0": 3} if one.form == "plugin" else {}
    return but(FILE, form=one.form, processes=one.processes, reporting=told)


def test_original_first_then_the_patched_file(checked: Checked) -> None:
    found, asked = checked(good, (9, 0))
    assert found.passed
    assert [(one.form, one.processes, one.paths[0], one.rule) for one in asked] == [
        ("control", "one", "/control", ""),
        ("control", "core", "/control", ""),
        ("file", "one", "/fixed", ""),
        ("file", "core", "/fixed", ""),
    ]
    assert all(one.plays == T4 for one in asked)


def test_by_plugin_the_file_stays_and_a_worker_is_asked_too(checked: Checked) -> None:
    found, asked = checked(good, (7, 5), file=False, python="/venv/bin/python")
    assert found.passed
    assert [(one.processes, one.paths[0], one.rule) for one in asked[2:]] == [
        ("one", "/control", "tile16"),
        ("core", "/control", "tile16"),
        ("worker", "/control", "tile16"),
    ]
    assert all(one.plays is None and one.python == "/venv/bin/python" for one in asked)  # the failing card itself


def test_a_control_that_does_not_fail_ends_it(checked: Checked) -> None:
    found, asked = checked(lambda one: but(good(one), status="generated", tokens=TILES), (9, 0))
    assert (found.passed, len(asked)) == (False, 1)


@pytest.mark.parametrize(
    ("capability", "mode", "why"), [((7, 0), "auto", "cannot play"), ((9, 0), "native", "only play")]
)
def test_a_card_that_cannot_be_the_failing_one(
    checked: Checked, capability: tuple[int, int], mode: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        checked(good, capability, mode)
