"""Verified means five layers, each passed, failed or not run; what was not run is never counted as passed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from oortriage.errors import OortriageError
from oortriage.fix.engine.run import EngineRun
from oortriage.fix.impact import CARDS, RECIPE, Impact, card_of, facts_of, measured_impact, shapes
from oortriage.fix.overlay import overlay
from oortriage.fix.probe import Launched, ProbeJob, Row, probe
from oortriage.fix.recognise import patched
from oortriage.fix.rules import Rule, decide
from oortriage.fix.source_patch import original_bytes, status
from oortriage.fix.tree import Tree, policy_file
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Progress
from oortriage.replay.compiler_env import CompilerEnv, compiler_env
from oortriage.replay.job import Cell
from oortriage.replay.live import CELL_SECONDS, run_live
from oortriage.replay.options import Options
from oortriage.replay.selection import select

SCHEMA_VERSION = 1
_TARGET = {"dtype": "float32", "head_size": 256, "window": 0, "phase": "prefill"}
_NEEDS_ENGINE = (
    "needs --engine, a whole vLLM and a card (an sm_75 one, or a newer one that plays it): start-up alone proves "
    "nothing, attention runs with the first request"
)


class Layer(msgspec.Struct, frozen=True):
    """One layer of the proof; ``detail`` gives its figures, or what it needs."""

    name: Literal["policy", "bytes", "kernel", "engine", "cost"]
    status: Literal["passed", "failed", "not_run"]
    detail: str


class Verification(msgspec.Struct, frozen=True):
    """What was verified of a vLLM. ``applied``: the file on disk is the patched one; ``by``: what puts it in force."""

    schema_version: int
    rule: str
    vllm: str
    version: str
    applied: bool
    verified: bool
    layers: list[Layer]
    impact: list[Impact] = []
    notes: list[str] = []
    by: Literal["file", "plugin"] = "file"
    engine: list[EngineRun] = []

    @property
    def exit_code(self) -> int:
        """0 verified, 1 not."""
        return 0 if self.verified else 1


def verify(
    tree: Tree,
    rule: Rule,
    *,
    dry_run: bool = False,
    cards: Sequence[str] = CARDS,
    live: str = "auto",
    progress: Progress | None = None,
    use_cache: bool = True,
) -> Verification:
    """Hold the patched file against the original, layer by layer.

    Args:
        tree: the vLLM.
        rule: the rule that is to be in force.
        dry_run: verify what an apply would write.
        cards: the cards of the impact table.
        live: how a card that is here is used (``auto``, ``native``, ``emulated``), or ``off``.
        progress: called with (cards done, all).
        use_cache: whether results of earlier runs count.

    Raises:
        RefusedError: the original is gone, or the file cannot be patched.
    """
    if not any(card_of(name).capability == (7, 5) for name in cards):
        cards = ("T4", *cards)  # without the failing card there is nothing to hold the others against
    stands = status(tree)
    control_bytes = original_bytes(tree)
    fixed_bytes = patched(control_bytes, rule) if dry_run else policy_file(tree).read_bytes()
    control, fixed = overlay(tree, control_bytes), overlay(tree, fixed_bytes)
    rows: list[Impact] = []

    def bytes_layer() -> Layer:
        rows.extend(measured_impact(rule, cards, control, fixed, env, progress=progress, use_cache=use_cache))
        return _bytes(rows)

    if fixed_bytes == control_bytes:
        return _unpatched(tree, rule)
    try:
        env = compiler_env("")
    except OortriageError as problem:
        layers = [Layer(name, "not_run", f"needs {problem}") for name in ("policy", "bytes", "kernel", "cost")]
        layers.insert(3, Layer("engine", "not_run", _NEEDS_ENGINE))
    else:
        layers = [_guarded("policy", lambda: _policy(rule, control, fixed)), _guarded("bytes", bytes_layer)]
        layers += [
            _kernel(rule, control, fixed, live),
            Layer("engine", "not_run", _NEEDS_ENGINE),
            _guarded("cost", lambda: _cost(control, env, live, use_cache=use_cache)),
        ]
    notes = [] if stands.state == "applied" else [f"on disk the file stands as: {stands.state.replace('_', ' ')}"]
    proved = all(one.status == "passed" for one in layers[:2]) and not any(one.status == "failed" for one in layers)
    return Verification(
        SCHEMA_VERSION,
        rule.name,
        tree.named,
        tree.version,
        applied=stands.state == "applied",
        verified=proved,
        layers=layers,
        impact=rows,
        notes=notes,
    )


def _unpatched(tree: Tree, rule: Rule) -> Verification:
    """Say at once that the file on disk chooses as it always did."""
    why = "the file is not patched: `oortriage patch apply` first (or --dry-run: what apply would write)"
    names: tuple[Literal["policy", "bytes", "kernel", "engine", "cost"], ...]
    names = ("policy", "bytes", "kernel", "engine", "cost")
    layers = [Layer(name, "failed" if name in names[:2] else "not_run", why) for name in names]
    return Verification(
        SCHEMA_VERSION, rule.name, tree.named, tree.version, applied=False, verified=False, layers=layers
    )


def _guarded(name: Literal["policy", "bytes", "cost"], layer: Callable[[], Layer]) -> Layer:
    try:
        return layer()
    except OortriageError as problem:
        return Layer(name, "not_run", f"needs {problem}")


def truth_rows() -> list[Row]:
    """List the truth table's rows: capabilities, head sizes, widths of queries and of keys, windows, phases."""
    found = []
    for gpu in ("T4", "V100", "A100", "A10", "L4", "H100"):
        card = card_of(gpu)
        whole = [one | {"kv_dtype": kv} for one in shapes(card, wide=True) for kv in ("auto", "float16")]
        found += [Row(card, one) for one in whole if not (one["dtype"] == "float16" and one["kv_dtype"] != "auto")]
    return found


def _policy(rule: Rule, control: SourceSpec, fixed: SourceSpec) -> Layer:
    rows = tuple(truth_rows())
    (before,), (after,) = probe([ProbeJob(control, rows), ProbeJob(fixed, rows)])
    if failed := [one.error for one in (*before, *after) if one.error]:
        return Layer("policy", "failed", f"the module cannot be asked: {failed[0]}")
    wrong, changed = [], 0
    for row, old, new in zip(rows, before, after, strict=True):
        expected, blind = (ruled(rule, row, old, sees=sees) for sees in (True, False))
        # Up to 0.12.0 the patch sees the keys' width; later the policy is told the queries' alone.
        if new not in (expected, blind):
            wrong.append(f"{row.card.name} {row.shape}: tile {new.tile}, warps {new.num_warps}")
        changed += new != old
    if wrong:
        return Layer("policy", "failed", f"{len(wrong)} of {len(rows)} rows are not as the rule says: {wrong[0]}")
    return Layer(
        "policy",
        "passed",
        f"{len(rows)} rows of the truth table from the really patched module: {changed} changed, all of them the "
        "target's; where the policy is not told the keys' width, the queries' decides",
    )


def ruled(rule: Rule, row: Row, old: Launched, *, sees: bool) -> Launched:
    """Say what a rule makes of a launch; ``sees``: whether the policy is told the keys' width."""
    facts = facts_of(row.card, row.shape, old.tile or 0)
    decision = decide(rule, facts if sees else msgspec.structs.replace(facts, kv_bytes=None))
    if decision is None:
        return old
    return Launched(decision.tile or old.tile, decision.num_warps or old.num_warps)


def _bytes(rows: list[Impact]) -> Layer:
    changed = [one for one in rows if one.changes]
    wrong = [one for one in rows if not one.as_expected]
    target = next((one for one in changed if not one.window), None)
    if wrong or target is None:
        one = wrong[0] if wrong else rows[0]
        return Layer(
            "bytes",
            "failed",
            f"{len(wrong)} of {len(rows)} rows: {one.gpu} {one.dtype} head {one.head_size} window {one.window} "
            f"{one.phase}: {one.before_bytes} before, {one.after_bytes} after, limit {one.limit_bytes}",
        )
    return Layer(
        "bytes",
        "passed",
        f"{target.before_bytes:,} before, {target.after_bytes:,} after on {target.target} of {target.limit_bytes:,}; "
        f"{len(rows) - len(changed)} other rows identical to the byte",
    )


def _kernel(rule: Rule, control: SourceSpec, fixed: SourceSpec, live: str) -> Layer:
    """Run original and patched file on the card that is here; the original must fail with the figure."""
    needs = (
        "needs an NVIDIA card: an sm_75 one, or a newer one that plays it (`oortriage patch verify` on that machine)"
    )
    if live == "off":
        return Layer("kernel", "not_run", needs)
    try:
        options = Options(kernel=RECIPE, gpu="T4", settings=dict(_TARGET))
        chosen = select(msgspec.structs.replace(options, source=_folder(control)))
        cells = [Cell(chosen.shape | change) for change in _live_shapes()]
        before = run_live(chosen, cells[:1], live, time=False, cell_seconds=CELL_SECONDS).results[0]
        ran = run_live(
            msgspec.structs.replace(chosen, source=fixed), cells, live, time=False, cell_seconds=CELL_SECONDS
        )
    except OortriageError as problem:
        return Layer("kernel", "not_run", f"{needs}; here: {problem}")
    bad = [one for one in ran.results if one.status != "ran" or not all(check.passed for check in one.checks)]
    if before.status != "out_of_resources":
        return Layer("kernel", "failed", f"the control does not fail: {before.status}: {before.message}")
    if bad:
        return Layer("kernel", "failed", f"{len(bad)} of {len(cells)}: {bad[0].status}: {bad[0].message}")
    checks = sum(len(one.checks) for one in ran.results)
    detail = (
        f"{rule.title} on {ran.device}, {ran.mode}: the control fails with {before.required_bytes:,} of "
        f"{before.limit_bytes:,}; {len(cells)} shapes run, {checks} outputs held against float64"
    )
    return Layer("kernel", "passed", detail)


def _folder(spec: SourceSpec) -> Any:
    from pathlib import Path

    return Path(spec.location)


def _live_shapes() -> list[dict[str, Any]]:
    return [
        {"phase": phase, "window": window, "block_size": block, "q_per_kv": group}
        for phase in ("prefill", "decode")
        for window in (0, 1024)
        for block, group in ((16, 2), (32, 4))
    ]


def _cost(control: SourceSpec, env: CompilerEnv, live: str, *, use_cache: bool) -> Layer:
    """Time every candidate on the card that is here; without one, say what ptxas makes of them for sm_75."""
    from oortriage.fix.cost import in_words, machine_code, measure, summary

    why = ""
    if live != "off":
        try:
            found = measure(control, env, live, use_cache=use_cache)
        except OortriageError as problem:
            why = f"; here: {problem}"
        else:
            return Layer("cost", found.status, summary(found))
    code = in_words(machine_code(control, env, use_cache=use_cache))
    return Layer("cost", "not_run", f"needs a card for the times{why}; {code}")
