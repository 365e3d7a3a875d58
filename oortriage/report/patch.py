"""Reports of the patch verbs; text says no more than JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.fix.engine.check import ended
from oortriage.fix.engine.run import EngineRun
from oortriage.fix.export import Export
from oortriage.fix.impact import Impact
from oortriage.fix.plan import Plan
from oortriage.fix.source_patch import Change, Status
from oortriage.fix.verify import Verification
from oortriage.report.escape import visible

_WIDTH = 100
LAYER_WORDS = {"passed": "passed", "failed": "FAILED", "not_run": "not run"}
IMPACT_HEADS = ("GPU", "type", "head", "window", "phase", "before", "after", "limit", "")
_STATES = {
    "not_applied": "Not patched",
    "applied": "Patched",
    "changed_since": "Changed since it was patched",
    "refused": "Cannot be patched",
}
_ACTIONS = {
    "applied": "Patched",
    "reverted": "The original is back, byte for byte",
    "nothing": "Nothing to do",
    "would_apply": "Would be patched (nothing was written)",
}


def as_json(result: Any) -> str:
    """Render any result as JSON."""
    return json.dumps(msgspec.to_builtins(result), indent=2) + "\n"


def status_text(result: Status) -> str:
    """Say how a vLLM stands."""
    lines = [f"{_STATES[result.state]}{f' with {result.rule}' if result.rule else ''}: {result.vllm}", result.file]
    lines += [result.detail] if result.detail else []
    if result.manifest:
        lines.append(f"patched {result.manifest.time}; the original is in {result.manifest.backup}")
    return _page(lines)


def change_text(result: Change) -> str:
    """Say what apply or revert did; a dry run shows the diff."""
    rule = f" ({result.rule})" if result.rule else ""
    lines = [f"{_ACTIONS[result.action]}{rule}: {result.vllm}", result.file]
    if result.changed:
        lines.append(f"sha256 {result.sha256_before[:16]}... -> {result.sha256_after[:16]}...")
    if result.backup:
        lines.append(f"the original is in {result.backup}; `oortriage patch revert` puts it back")
    body = _page([*lines, *result.notes])
    if result.action != "would_apply":
        return body
    return body + "\n" + "".join(visible(line) + "\n" for line in result.diff.splitlines())


def plan_text(result: Plan) -> str:
    """Say whether the rule matches, what it changes, and what else there is."""
    head = f"{result.title} {'matches' if result.matches else 'does not match'}: {result.summary}"
    lines = [head, *(f"does not hold: {one}" for one in result.failing)]
    if result.before_bytes is not None:
        over = result.before_bytes - result.limit_bytes
        fits = f"{over:,} over" if over > 0 else "it fits"
        lines.append(
            f"{result.gpu}, vLLM {result.version}: {result.before_bytes:,} of {result.limit_bytes:,} B, {fits}"
        )
        lines.append("settings: " + ", ".join(f"{name}={value}" for name, value in result.settings.items()))
    parts = [_page(lines), *_table(result.impact)]
    if result.remedies:
        marks = {True: "applies", False: "not in this release", None: "release not known"}
        short = [
            f"{number}. {one.change} ({one.condition}; {marks[one.applies]}): {one.note}"
            for number, one in enumerate(result.remedies, 1)
        ]
        parts.append(_page(["Short of a patch", *short]))
    tail = [*(f"caution: {one}" for one in result.cautions), *result.assumptions, *result.notes]
    return "\n".join([*parts, *([_page(tail)] if tail else [])])


def verification_text(result: Verification) -> str:
    """Show the layers: passed, failed, or not run and what that needs."""
    layers = [f"{one.name:<7} {LAYER_WORDS[one.status]:<7}  {one.detail}" for one in result.layers]
    unrun = [one.name for one in result.layers if one.status == "not_run"]
    told = [f"not run, and so not verified: {', '.join(unrun)}"] if unrun else []
    page = _page([verification_head(result), *layers, *told, *result.notes])
    engines = [_page(engine_lines(result.engine))] if result.engine else []
    return "\n".join([page, *engines, *_table(result.impact)])


def verification_head(result: Verification) -> str:
    """Say what was verified, and whether it was."""
    by = " by plugin" if result.by == "plugin" else ""
    return f"{'Verified' if result.verified else 'Not verified'}: {result.rule}{by} in {result.vllm}"


def engine_lines(runs: Sequence[EngineRun]) -> list[str]:
    """Tell the engine's runs, one a line, under a line that says what stands in them."""
    if not runs:
        return []
    lines = ["Engine runs (form, processes, how it ended, who reported the policy, seconds)"]
    for run in runs:
        told = ", ".join(f"{name} {pid}" for name, pid in run.reporting.items()) or "-"
        seconds = ", ".join(f"{stage} {one:.0f}" for stage, one in run.seconds.items())
        lines.append(f"{run.form}, {run.processes}: {ended(run)}; {told}; {seconds}")
        lines += [f"the plugin warned: {one}" for one in run.warnings]
    return lines


def export_text(result: Export) -> str:
    """Show the three texts one after another; each has a line that says what it is."""
    named = (("diff", result.diff), (result.test_name, result.test), ("pull request", result.text))
    return "\n".join(f"==> {name} <==\n{text}" for name, text in named)


def _table(rows: Sequence[Impact]) -> list[str]:
    if not rows:
        return []
    table = [IMPACT_HEADS, *(impact_row(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(IMPACT_HEADS))]
    drawn = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in table]
    return [visible("\n".join(drawn)).replace("\\n", "\n") + "\n"]


def impact_row(row: Impact) -> tuple[str, ...]:
    """Write a row of the impact table, under :data:`IMPACT_HEADS`; sizes in bytes."""
    before, after = (f"{one:,}" if one is not None else "-" for one in (row.before_bytes, row.after_bytes))
    over = row.after_bytes is not None and row.after_bytes > row.limit_bytes
    last = ", ".join([*([row.change] if row.change else []), *(["does not fit"] if over else [])])
    return (
        row.gpu, row.dtype, str(row.head_size), str(row.window), row.phase, before, after, f"{row.limit_bytes:,}", last,
    )  # fmt: skip


def _page(lines: Sequence[str]) -> str:
    wrapped = [textwrap.fill(visible(line), _WIDTH, subsequent_indent="  ", break_long_words=False) for line in lines]
    return "\n".join(wrapped) + "\n"
