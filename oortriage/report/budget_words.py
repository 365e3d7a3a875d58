"""An engine's memory budget in words that all formats share: rows of figures, sums that do not come out, usage."""

from __future__ import annotations

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Check, PoolUse
from oortriage.evidence.values import format_bytes
from oortriage.triage.diagnosis import BudgetView

#: Figures worth a row, in this order, with their words.
_ROWS = {
    "capacity_bytes": "total memory of the card",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "budget_bytes": "the engine's share",
    "free_bytes": "free at start",
    "weights_bytes": "weights",
    "consumed_bytes": "weights and non-torch",
    "peak_torch_bytes": "torch peak, weights included",
    "activation_peak_bytes": "activation peak",
    "non_torch_bytes": "non-torch",
    "cudagraph_estimate_bytes": "CUDA graphs, estimated by the engine",
    "cudagraph_bytes": "CUDA graphs, captured",
    "unprinted_bytes": "not printed apart",
    "kv_memory_flag_bytes": "KV memory, set by hand",
    "kv_available_bytes": "left for the KV cache",
    "kv_needed_bytes": "KV memory for one full request",
    "kv_block_bytes": "bytes of one KV block",
    "kv_bytes_per_token": "bytes of one token",
    "block_size": "block size",
    "kv_blocks": "KV blocks",
    "kv_tokens": "KV tokens",
    "kv_tokens_by_concurrency": "KV tokens by the concurrency",
    "max_model_len": "max_model_len",
    "kv_concurrency": "requests of full length",
    "estimated_max_model_len": "length that fits, by the engine",
    "kv_fit_bytes": "KV memory that fits the share, by the engine",
    "kv_full_bytes": "KV memory that fits the card, by the engine",
}


def value_words(value: float, unit: str) -> str:
    """Write a number with its unit: bytes rounded to two decimals of a binary unit, counts with commas."""
    if unit == "bytes":
        return format_bytes(round(value))
    if unit == "requests":
        return f"{value:,.2f}x"
    if unit in ("share", "percent", "GiB") and value != int(value):
        return f"{value:,.4g}" + (" %" if unit == "percent" else "")
    return f"{int(value):,}" + (" %" if unit == "percent" else "")


def figure_words(figure: Figure) -> str:
    """Write a figure, with its bounds where it rests on a guess."""
    words = value_words(figure.value, figure.unit)
    if figure.provenance == "estimated" and figure.low is not None and figure.high is not None:
        low, high = value_words(figure.low, figure.unit), value_words(figure.high, figure.unit)
        return f"{words} ({low} to {high})" if low != high else words
    return words


def figure_rows(view: BudgetView) -> list[list[str]]:
    """Tabulate the figures: what, how much, whose word it is, and the line or the sum behind it."""
    return [
        [words, figure_words(view.figures[name]), view.figures[name].provenance, view.figures[name].how]
        for name, words in _ROWS.items()
        if name in view.figures
    ]


def check_words(check: Check) -> str:
    """Say whether a printed figure is the sum of the others."""
    printed, computed = value_words(check.printed, check.unit), value_words(check.computed, check.unit)
    place = f"line {check.line}: " if check.line else ""
    if check.agrees:
        return f"{place}{check.what}: printed {printed}, and {check.how} gives {computed}"
    why = f": {check.why}" if check.why else ""
    return f"{place}{check.what}: printed {printed}, but {check.how} gives {computed}{why}"


def share_end(view: BudgetView) -> Figure | None:
    """Return where the engine's share ends in the picture; None where the share is a piece itself."""
    return None if any(one.kind == "others" for one in view.parts) else view.figures.get("budget_bytes")


def odd_checks(view: BudgetView) -> list[str]:
    """List the figures that are not what the others say."""
    return [check_words(one) for one in view.checks if not one.agrees]


def use_words(use: PoolUse | None) -> str:
    """Say what was set aside for the KV cache and what of it was in use; empty where the log does not show it."""
    if use is None:
        return ""
    who = f" by {use.running:,} running request{'s' * (use.running != 1)}" if use.running is not None else ""
    peak = f"at most {use.peak_share:.1%} in use{who}, in {use.readings:,} reading{'s' * (use.readings != 1)}"
    pool = f"{value_words(use.pool_bytes.value, 'bytes')} set aside, " if use.pool_bytes else ""
    idle = f": {value_words(use.idle_bytes.value, 'bytes')} never used" if use.idle_bytes else ""
    return f"{pool}{peak}{idle} (line {use.line})"


def solution_lines(view: BudgetView) -> list[str]:
    """List what was solved for, the flag first; what rests on a guess is said to."""
    return [
        f"{one.change}: {one.effect}" * bool(one.change)
        + one.effect * (not one.change)
        + (" (estimated)" if one.provenance == "estimated" else "")
        for one in view.solutions
    ]
