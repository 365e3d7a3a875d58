"""The half of ``oortriage budget`` that starts from a log, solves for flags and tabulates what-ifs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from oortriage.budget.figure import Figure
    from oortriage.budget.log_budget import LogBudget
    from oortriage.budget.plan import Budget, Planned
    from oortriage.budget.solution import Solution
    from oortriage.budget.solve import Want
    from oortriage.budget.solve_plan import Card
    from oortriage.budget.what_if import Axes, Row
    from oortriage.report.budget_log import LogReport


def read_log(log: str) -> tuple[LogBudget, float]:
    """Rebuild the budget of a log's last run; also the card's compute capability, 0 where the log does not tell.

    Raises:
        InputError: the log cannot be read.
    """
    from oortriage.api import default_analyzer
    from oortriage.budget.from_log import read_figures
    from oortriage.budget.rebuild import rebuild
    from oortriage.evidence.event import find_events
    from oortriage.evidence.fact import facts_of
    from oortriage.triage.case import Facts
    from oortriage.triage.derived import derive

    analyzer = default_analyzer()
    read = analyzer.read(log)
    events = find_events(read, analyzer.matcher)
    facts = Facts(facts_of(events, read.name))
    derive(read, facts)
    return rebuild(read_figures(events)), facts.number("compute_capability") or 0.0


def report_of(log: str, config: Path | None, vllm: str, wish: Want, axes: Axes | None) -> LogReport:
    """Put together what ``--from-log`` writes.

    Args:
        log: the log, or ``-``.
        config: the model's config.json or its folder: with it the layout is the model's own.
        vllm: the release, where the log does not name it.
        wish: a length and a concurrency to solve for.
        axes: what to vary for the table; None for no table.

    Raises:
        UsageError: the log holds none of vLLM's memory figures, or the axes cannot be varied.
    """
    from oortriage.budget.log_plan import checks_by_shape, planned_from_log
    from oortriage.budget.model import read_model
    from oortriage.budget.solve import solve
    from oortriage.budget.solve_plan import solve_plan
    from oortriage.budget.what_if import by_layout, by_tokens
    from oortriage.errors import UsageError
    from oortriage.kernels.model_config import load_config
    from oortriage.report.budget_log import SCHEMA_VERSION, LogReport
    from oortriage.triage.memory_budget import view_of

    found, capability = read_log(log)
    if vllm and not found.version:
        found = msgspec.structs.replace(found, version=vllm)
    if not any(name.startswith(("kv_", "weights_", "budget_", "capacity_")) for name in found.figures):
        raise UsageError(f"{log}: no line of vLLM's memory decision in it")
    if capability and not wish.capability:
        wish = msgspec.structs.replace(wish, capability=capability)
    planned = None
    if config is not None:
        planned = planned_from_log(read_model(load_config(config), str(config)), found, vllm)
        found = msgspec.structs.replace(found, checks=(*found.checks, *checks_by_shape(found, planned)))
    left = found.figures.get("kv_available_bytes")
    card = card_of_log(found)
    solutions = solve_plan(planned, left, wish, card) if planned and left else solve(found, wish)
    rows: tuple[Row, ...] = ()
    if axes is not None:
        hold = by_layout(planned) if planned else by_tokens(found)
        if hold is None or left is None:
            raise UsageError("what-ifs need what is left for the KV cache, and a token's bytes or the model's config")
        rows = _what_if(found, planned, axes, left, card, hold)
    kinds = {one.kind for one in solutions}
    verdict = "works" if "fits" in kinds else "does_not" if kinds else "undetermined"
    return LogReport(
        SCHEMA_VERSION,
        log,
        found.words.get("model", ""),
        verdict,
        _sentence(verdict, found, wish),
        view_of(found, solutions),
        list(rows),
    )


def card_of_log(found: LogBudget) -> Card | None:
    """Take a card from a log: its memory, the share in force, what was free at start, graphs beside the share."""
    from oortriage.budget.solve_plan import Card

    total, share = found.figures.get("capacity_bytes"), found.value("gpu_memory_utilization")
    if total is None or not share or "kv_memory_flag_bytes" in found.figures:
        return None
    graphs = None if found.graphs_counted else found.figures.get("cudagraph_bytes")
    return Card(total, share, found.figures.get("free_bytes"), graphs)


def _what_if(
    found: LogBudget, planned: Planned | None, axes: Axes, left: Figure, card: Card | None, hold: object
) -> tuple[Row, ...]:
    from oortriage.budget.what_if import Row, what_if

    now = Row(
        found.value("gpu_memory_utilization") or 0.0,
        planned.max_model_len if planned else int(found.value("max_model_len") or 8192),
        planned.layout.block_size if planned else int(found.value("block_size") or 16),
        found.words.get("kv_cache_dtype", "auto"),
    )
    return what_if(planned.settings.version if planned else found.version, now, axes, left, card, hold)  # type: ignore[arg-type]


def _sentence(verdict: str, found: LogBudget, wish: Want) -> str:
    length = wish.length or int(found.value("max_model_len") or 0)
    many = f"{wish.concurrency:g} requests" if wish.concurrency and wish.concurrency != 1 else "One request"
    one = many == "One request"
    of_it = f"{many} of {length:,} tokens" if length else many
    if verdict == "works":
        return f"{of_it} fit{'s' * one} in the KV cache that this log shows"
    if verdict == "does_not":
        return f"{of_it} do{'es' * one} not fit in the KV cache that this log shows"
    return "The log does not tell whether a request fits: the KV memory, or what a token takes, is missing"


def parse_axes(text: str) -> Axes:
    """Read ``--what-if``: ``util=0.85,0.9 len=8192,16384 block=16,32 kv=auto,fp8``; ``;`` may stand for the space.

    Raises:
        UsageError: an unknown axis, or a value that is no number.
    """
    from oortriage.budget.what_if import Axes
    from oortriage.errors import UsageError

    found: dict[str, tuple[str, ...]] = {}
    for part in text.replace(";", " ").split():
        name, equals, values = part.partition("=")
        key = _AXES.get(name.removeprefix("--").replace("-", "_"), "")
        if not key or not equals or not values.strip(","):
            raise UsageError(f"--what-if {part[:60]!r}: write util=0.85,0.9 len=8192,16384 block=16,32 kv=auto,fp8")
        found[key] = tuple(one for one in values.split(",") if one)
    try:
        return Axes(
            tuple(map(float, found.get("utilization", ()))),
            tuple(map(int, found.get("max_model_len", ()))),
            tuple(map(int, found.get("block_size", ()))),
            found.get("kv_dtype", ()),
        )
    except ValueError as problem:
        raise UsageError(f"--what-if: {problem}") from problem


_AXES = {
    "util": "utilization",
    "utilization": "utilization",
    "gpu_memory_utilization": "utilization",
    "len": "max_model_len",
    "max_model_len": "max_model_len",
    "block": "block_size",
    "block_size": "block_size",
    "kv": "kv_dtype",
    "kv_cache_dtype": "kv_dtype",
}


def write_svg(drawn: str, path: Path) -> None:
    """Write the bar chart as a picture; ``drawn`` is empty where there is nothing to draw.

    Raises:
        UsageError: there is nothing to draw, or the file cannot be written.
    """
    from oortriage.errors import UsageError

    if not drawn:
        raise UsageError("there is nothing to draw: fewer than two pieces of the card's memory are known")
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror or problem}") from problem


def log_svg(result: LogReport) -> str:
    """Draw a log's budget; empty where the log prints no two pieces."""
    from oortriage.report.budget_words import share_end
    from oortriage.report.draw.budget_bar import budget_bar_svg

    return budget_bar_svg(result.budget.parts, share_end(result.budget)) if result.budget.parts else ""


def wishes(
    planned: Planned, result: Budget, wish: Want, axes: Axes | None
) -> tuple[tuple[Solution, ...], tuple[Row, ...]]:
    """Solve a planned budget for a wish, and go through what-ifs.

    Raises:
        UsageError: a wish beyond any machine, or axes that cannot be varied.
    """
    from oortriage.budget.solve_plan import card_of, solve_plan
    from oortriage.budget.what_if import Row, by_layout, what_if

    card = card_of(result.memory)
    solutions = solve_plan(planned, result.kv_memory, wish, card) if wish.length or wish.concurrency else ()
    if axes is None:
        return solutions, ()
    now = Row(
        card.utilization if card else 0.0, planned.max_model_len, planned.layout.block_size, planned.settings.kv_dtype
    )
    hold = by_layout(planned)
    return solutions, what_if(planned.settings.version, now, axes, result.kv_memory, card, hold)


def wish_of(length: int | None, concurrency: float | None) -> Want:
    """Check a wish.

    Raises:
        UsageError: a length or a concurrency that is none.
    """
    from oortriage.budget.solve import Want
    from oortriage.errors import UsageError

    if length is not None and not 1 <= length <= 1 << 40:
        raise UsageError(f"--want-len {length}: a number of tokens, 1 or more")
    if concurrency is not None and not 0 < concurrency <= 1e9:
        raise UsageError(f"--want-concurrency {concurrency:g}: a number of requests above 0")
    return Want(length=length or 0, concurrency=concurrency or 0.0)
