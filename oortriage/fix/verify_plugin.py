"""Verifies a rule that is in force by plugin: the original file, without and with the rule's hooks.

Policy and bytes are proved here, without a card. What runs on a card (kernel, engine, cost) is not run here, and says
what it needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from oortriage.errors import OortriageError
from oortriage.fix.hooked import Pair, pairs
from oortriage.fix.impact import CARDS, card_of
from oortriage.fix.overlay import overlay
from oortriage.fix.plugin import VARIABLE
from oortriage.fix.probe import Launched, ProbeJob, probe
from oortriage.fix.rules import Rule
from oortriage.fix.source_patch import Status, original_bytes, status
from oortriage.fix.tree import Tree
from oortriage.fix.verify import SCHEMA_VERSION, Layer, Verification, ruled, truth_rows
from oortriage.kernels.source import SourceSpec
from oortriage.replay.cells import Progress
from oortriage.replay.compiler_env import compiler_env

#: The name in the entry point group ``vllm.general_plugins``.
ENTRY_POINT = "oortriage_tile_policy"
_OLD = "this vLLM chooses no tile (up to 0.10.2 it is the KV cache's block: --block-size 16), or is not known"


def verify_plugin(
    tree: Tree,
    rule: Rule,
    *,
    cards: Sequence[str] = CARDS,
    progress: Progress | None = None,
    use_cache: bool = True,
) -> Verification:
    """Hold the original file with a rule's hooks against the same file without them.

    Args:
        tree: the vLLM; a patch of its file is left out of account.
        rule: the rule that the plugin is to put in force.
        cards: the cards of the impact table; a T4 is added where none is of its capability.
        progress: called with (cards done, all).
        use_cache: whether compilations of earlier runs count.

    Raises:
        RefusedError: the file is patched and its original is gone.
        UsageError: no such card.
    """
    if not any(card_of(name).capability == (7, 5) for name in cards):
        cards = ("T4", *cards)  # without the failing card there is nothing to hold the others against
    stands = status(tree)
    control = overlay(tree, original_bytes(tree))
    table: list[Pair] = []
    try:
        env = compiler_env("")
        table = pairs(rule, cards, control, env, progress=progress, use_cache=use_cache)
        layers = [_policy(rule, control, table), _bytes(table)]
    except OortriageError as problem:
        layers = [Layer("policy", "not_run", f"needs {problem}"), Layer("bytes", "not_run", f"needs {problem}")]
    return Verification(
        SCHEMA_VERSION,
        rule.name,
        tree.named,
        tree.version,
        applied=False,
        verified=all(one.status == "passed" for one in layers),
        layers=[*layers, *_unrun(rule)],
        impact=[one.impact for one in table],
        notes=_notes(rule, stands),
        by="plugin",
    )


def _policy(rule: Rule, control: SourceSpec, table: list[Pair]) -> Layer:
    if failed := [f"{one.named}: {error}" for one in table for error in one.errors]:
        return Layer("policy", "failed", f"the module cannot be asked: {failed[0]}")
    wrong = [
        f"{one.named}: tile {one.hooked.tile}, warps {one.hooked.num_warps}; the rule says tile {one.expected.tile}, "
        f"warps {one.expected.num_warps}"
        for one in table
        if _settings(one.hooked) != _settings(one.expected) or _settings(one.plain) != _settings(one.plain_expected)
    ]
    changed = sum(_settings(one.hooked) != _settings(one.plain) for one in table)
    if wrong:
        return Layer("policy", "failed", f"{len(wrong)} of {len(table)} launches are not as the rule says: {wrong[0]}")
    if not changed:
        return Layer("policy", "failed", f"the hooks change nothing: {_OLD}")
    compiled = f"{len(table)} launches of the original module, without and with the hooks: {changed} changed"
    if rule.change is None:
        return Layer(
            "policy",
            "passed",
            f"{compiled}, each to the largest tile that fits, of all that were compiled without hooks",
        )
    return _truth(rule, control, compiled)


def _settings(launched: Launched) -> tuple[int | None, int | None]:
    return launched.tile, launched.num_warps


def _truth(rule: Rule, control: SourceSpec, compiled: str) -> Layer:
    """Ask the truth table's rows of the hooked module; every row by the same sight of the keys' width."""
    rows = tuple(truth_rows())
    ((plain, hooked),) = probe([ProbeJob(control, rows, ("", rule.name))])
    if failed := [one.error for one in (*plain, *hooked) if one.error]:
        return Layer("policy", "failed", f"the module cannot be asked: {failed[0]}")
    trials = [
        (
            how,
            [row for row, old, new in zip(rows, plain, hooked, strict=True) if new != ruled(rule, row, old, sees=sees)],
        )
        for sees, how in ((True, "queries and keys"), (False, "the queries alone, all that the policy is told of"))
    ]
    how, wrong = min(trials, key=lambda one: len(one[1]))
    if wrong:
        return Layer(
            "policy",
            "failed",
            f"{len(wrong)} of {len(rows)} rows are not as the rule says: {wrong[0].card.name} {wrong[0].shape}",
        )
    changed = sum(new != old for old, new in zip(plain, hooked, strict=True))
    return Layer(
        "policy",
        "passed",
        f"{len(rows)} rows of the truth table from the hooked module: {changed} changed, all of them the target's, by "
        f"the width of {how}; {compiled}",
    )


def _bytes(table: list[Pair]) -> Layer:
    wrong = [
        f"{one.named}: {_figures(one)}; compiled without hooks {one.plain_expected.required_bytes} and "
        f"{one.expected.required_bytes}"
        for one in table
        if not one.impact.as_expected
        or one.plain.required_bytes != one.plain_expected.required_bytes
        or one.hooked.required_bytes != one.expected.required_bytes
    ]
    if wrong:
        return Layer("bytes", "failed", f"{len(wrong)} of {len(table)} rows: {wrong[0]}")
    cured = [one for one in table if _over(one.plain, one) and not _over(one.hooked, one)]
    if not cured:
        return Layer("bytes", "failed", f"no launch that overflowed fits now: {_OLD}")
    same = sum(one.decision is None for one in table)
    still = sum(_over(one.hooked, one) for one in table)
    left = f", {still} of them over the limit as before" if still else ""
    figures = "; ".join(dict.fromkeys(_figures(one) for one in cured))
    return Layer("bytes", "passed", f"{figures}; {same} other rows identical to the byte{left}")


def _figures(one: Pair) -> str:
    before, after = (
        f"{size:,}" if size is not None else "nothing" for size in (one.plain.required_bytes, one.hooked.required_bytes)
    )
    return f"{before} before, {after} after on {one.row.card.target.name} of {one.row.card.limit_bytes:,}"


def _over(launched: Launched, one: Pair) -> bool:
    return launched.required_bytes is not None and launched.required_bytes > one.row.card.limit_bytes


def _unrun(rule: Rule) -> list[Layer]:
    started = f"a vLLM that is started with {VARIABLE}={rule.name}"
    return [
        Layer(
            "kernel",
            "not_run",
            "needs an NVIDIA card, and the kernel launched there through the hooks, which this command does not do: "
            "`experiment --live --vary TILE_SIZE=16,32` runs and checks the same kernel with the tiles themselves",
        ),
        Layer("engine", "not_run", f"needs --engine, a card, and {started}: one request, 32 tokens"),
        Layer(
            "cost",
            "not_run",
            f"needs a card and times of {started}, against one without; `experiment --live` gives the kernel's own",
        ),
    ]


def _notes(rule: Rule, stands: Status) -> list[str]:
    notes = [
        f"in force only where vLLM starts with {VARIABLE}={rule.name}, and VLLM_PLUGINS, where set, names {ENTRY_POINT}"
    ]
    if rule.change is None:
        notes.insert(0, f"{rule.title} is the plugin's alone, so --plugin is implied")
    if stands.state == "applied":
        notes.append(
            f"on disk the file is patched with {stands.rule}; what was verified is the original with the hooks"
        )
    elif stands.state == "changed_since":
        notes.append(f"on disk: {stands.detail}; what was verified is the file as it is, with the hooks")
    return notes
