"""Which engine runs a verification needs, and what they prove together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from oortriage.errors import UsageError
from oortriage.fix.engine.run import TOKENS, EngineAsk, EngineRun, Form, Processes, Reader, run_engine
from oortriage.fix.rules import Rule
from oortriage.fix.tree import Tree
from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.source import SourceSpec
from oortriage.replay.live import choose_mode, local_card

#: Processes that must report a policy that is on by plugin.
_REPORTING: dict[Processes, tuple[str, ...]] = {
    "one": ("front end",),
    "core": ("front end", "EngineCore"),
    "worker": ("front end", "EngineCore", "VllmWorker"),
}


class EngineSpec(msgspec.Struct, frozen=True):
    """How the engine layer is run. ``card``: the failing one. ``mode``: ``auto``, ``native`` or ``emulated``.

    ``logs``: a folder that gets the logs of all runs.
    """

    card: Card
    mode: str = "auto"
    device: int = 0
    logs: Path | None = None


class EngineCheck(msgspec.Struct, frozen=True):
    """All runs, and the verdict over them."""

    passed: bool
    detail: str
    runs: list[EngineRun]


def check_engine(
    tree: Tree,
    rule: Rule,
    control: SourceSpec,
    fixed: SourceSpec | None,
    spec: EngineSpec,
    read: Reader,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> EngineCheck:
    """Run the original first, which must fail, then the fix, which must generate.

    Args:
        tree: the vLLM.
        rule: the rule in force.
        control: a tree with the original file.
        fixed: a tree with the patched file; None for the rule by plugin.
        spec: card and mode.
        read: reads the log of a run that failed.
        progress: called with (runs done, all).

    Raises:
        NoCardError: there is no card.
        UsageError: the card that is there cannot be the failing one.
    """
    python = tree.python or sys.executable
    played = _played(spec, python)
    form: Form = "plugin" if fixed is None else "file"
    layouts: tuple[Processes, ...] = ("one", "core", "worker") if form == "plugin" else ("one", "core")
    after = control if fixed is None else fixed

    def ask(form: Form, processes: Processes, source: SourceSpec, name: str = "") -> EngineAsk:
        return EngineAsk(form, processes, python, (source.location, str(tree.root)), name, played)

    asks = [ask("control", processes, control) for processes in ("one", "core")]
    asks += [ask(form, processes, after, rule.name if fixed is None else "") for processes in layouts]
    runs: list[EngineRun] = []
    for one in asks:
        runs.append(run_engine(one, read, logs=spec.logs))
        if progress:
            progress(len(runs), len(asks))
        if one.form == "control" and runs[-1].status != "out_of_resources":
            break  # without a control that fails the rest proves nothing
    passed, detail = judge(runs, spec.card, played=played is not None)
    return EngineCheck(passed, detail, runs)


def _played(spec: EngineSpec, python: str) -> Card | None:
    """Choose: the failing card itself, or a newer one that plays it."""
    here = local_card(spec.device, python)
    if choose_mode(spec.mode, here, spec.card.target) == "emulated":
        return spec.card
    if here.capability != spec.card.capability:
        raise UsageError(f"{here.name} is not the failing kind of card, {spec.card.target.name}: it can only play it")
    return None


def judge(runs: Sequence[EngineRun], card: Card, *, played: bool) -> tuple[bool, str]:
    """Say whether the runs prove the fix, and in one sentence what they showed."""
    how = f"{'played ' if played else ''}{card.target.name}"
    controls = [one for one in runs if one.form == "control"]
    for one in controls:
        if one.status != "out_of_resources":
            return False, f"the control does not fail as it should ({how}, {named(one)}): {ended(one)}"
        if one.limit_bytes != card.limit_bytes:
            return False, f"the control fails at {one.limit_bytes} bytes, not at {card.limit_bytes} ({how})"
    if len({(one.required_bytes, one.fingerprint) for one in controls}) > 1:
        return False, "the controls fail in different ways: " + "; ".join(ended(one) for one in controls)
    fixed = [one for one in runs if one.form != "control"]
    for one in fixed:
        if not one.whole:
            return False, f"{named(one)}: {ended(one)}"
        silent = [role for role in _REPORTING[one.processes] if not _reports(one, role)]
        if one.form == "plugin" and silent:
            return False, f"{named(one)}: the policy was not reported by {', '.join(silent)}"
    first = controls[0]
    same = len({str(one.tokens) for one in fixed}) == 1
    return True, (
        f"{how}: without the rule the first request fails with {first.required_bytes:,} of {first.limit_bytes:,} bytes "
        f"(fingerprint {first.fingerprint}, {len(controls)} runs); with it {TOKENS} tokens for each prompt in "
        f"{' and '.join(named(one) for one in fixed)}; {'the same tokens in each' if same else 'NOT the same tokens'}"
    )


def _reports(run: EngineRun, role: str) -> bool:
    return any(one.startswith(role) for one in run.reporting)


def named(run: EngineRun) -> str:
    """Name a run for people."""
    words = {"one": "one process", "core": "a spawned engine core", "worker": "a worker of its own"}
    return words[run.processes]


def ended(run: EngineRun) -> str:
    """Say how a run ended."""
    if run.status == "out_of_resources":
        return f"{run.required_bytes:,} of {run.limit_bytes:,} bytes, stage {run.stage}, fingerprint {run.fingerprint}"
    if run.status == "generated":
        return f"{[len(one) for one in run.tokens]} tokens"
    return f"{run.status.replace('_', ' ')} at stage {run.stage}, exit {run.exit_code}: {run.detail}"
