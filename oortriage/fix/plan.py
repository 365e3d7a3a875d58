"""From a crash, or a card and a model, to whether a rule is the cure, what it changes, and what else would help."""

from __future__ import annotations

from typing import Any

import msgspec

from oortriage.errors import UsageError
from oortriage.fix.impact import CARDS, RECIPE, Impact, facts_of, planned_impact
from oortriage.fix.remedies import Remedy, remedies
from oortriage.fix.rules import Rule, broken
from oortriage.replay.cells import Compilation, Progress, compile_cells
from oortriage.replay.job import Cell
from oortriage.replay.options import Options
from oortriage.replay.selection import Selection, select
from oortriage.triage.diagnosis import Diagnosis

SCHEMA_VERSION = 1


class Plan(msgspec.Struct, frozen=True):
    """Whether a rule matches, and what it would do. ``failing``: the conditions that do not hold, in words."""

    schema_version: int
    rule: str
    title: str
    summary: str
    matches: bool
    failing: list[str]
    gpu: str
    version: str
    settings: dict[str, Any]
    before_bytes: int | None
    limit_bytes: int
    impact: list[Impact]
    remedies: list[Remedy]
    cautions: list[str]
    assumptions: list[str] = []
    notes: list[str] = []

    @property
    def exit_code(self) -> int:
        """0 the rule matches, 1 it does not."""
        return 0 if self.matches else 1


def plan(
    options: Options,
    diagnosis: Diagnosis | None,
    rule: Rule,
    *,
    table: bool = True,
    progress: Progress | None = None,
    use_cache: bool = True,
) -> Plan:
    """Say whether a rule is the cure.

    Args:
        options: card, release, model; flags win over the log.
        diagnosis: the crash, if there is a log.
        rule: the rule.
        table: compile the impact table as well.
        progress: called with (cards done, all).
        use_cache: whether results of earlier runs count.

    Raises:
        UsageError: card or release are not told.
        OortriageError: source or compiler are not to be had.
    """
    if diagnosis is not None and diagnosis.resource != "shared_memory" and not options.kernel:
        return _elsewhere(rule, f"the log's failure is {diagnosis.resource}, not a block's shared memory")
    if diagnosis is None and not options.kernel:
        options = msgspec.structs.replace(options, kernel=RECIPE)
    chosen = select(options, diagnosis)
    if chosen.kernel != RECIPE:
        return _elsewhere(rule, f"the failing kernel is {chosen.kernel}; the rules are for {RECIPE}")
    if chosen.source is None:
        raise UsageError("which vLLM? --vllm X.Y.Z or --vllm-source DIR")
    what = Compilation(RECIPE, chosen.card, chosen.env, chosen.source)
    (outcome,), notes = compile_cells(what, [Cell(chosen.shape)], use_cache=use_cache)
    kernel = outcome.largest
    tile = int(kernel.settings.get("TILE_SIZE") or 0) if kernel else 0
    required = kernel.required_bytes if kernel else None
    failing = [one.words for one in broken(rule, facts_of(chosen.card, chosen.shape, tile))]
    if kernel is None:
        failing.append(f"the kernel compiles ({outcome.failure.message if outcome.failure else 'nothing launched'})")
    elif not tile:
        failing.append("vLLM 0.11.0 or later (up to 0.10.2 the tile is the KV cache's block: --block-size 16)")
    elif rule.change is None and required is not None and required <= chosen.card.limit_bytes:
        failing.append(f"a launch that does not fit (this one needs {required:,} of {chosen.card.limit_bytes:,} bytes)")
    rows = _rows(rule, chosen, progress, use_cache=use_cache) if table and tile else []
    return Plan(
        schema_version=SCHEMA_VERSION,
        rule=rule.name,
        title=rule.title,
        summary=rule.summary,
        matches=not failing,
        failing=failing,
        gpu=chosen.card.name,
        version=chosen.source.version,
        settings=chosen.shape,
        before_bytes=required,
        limit_bytes=chosen.card.limit_bytes,
        impact=rows,
        remedies=remedies(chosen.source.version, int(chosen.shape["head_size"])),
        cautions=list(rule.cautions),
        assumptions=list(chosen.assumptions),
        notes=[*chosen.notes, *notes],
    )


def _rows(rule: Rule, chosen: Selection, progress: Progress | None, *, use_cache: bool) -> list[Impact]:
    return planned_impact(rule, CARDS, chosen.source, chosen.env, progress=progress, use_cache=use_cache)


def _elsewhere(rule: Rule, why: str) -> Plan:
    return Plan(
        SCHEMA_VERSION, rule.name, rule.title, rule.summary, matches=False, failing=[why], gpu="", version="",
        settings={}, before_bytes=None, limit_bytes=0, impact=[], remedies=[], cautions=[],
    )  # fmt: skip
