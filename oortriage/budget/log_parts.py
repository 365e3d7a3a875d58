"""The card divided: what of it went where, by a log's figures, and how much of the KV cache was in use."""

from __future__ import annotations

from collections.abc import Mapping

from oortriage.budget.figure import Figure
from oortriage.budget.from_log import LogFigures
from oortriage.budget.log_budget import Part, PartKind, PoolUse


def parts_of(figures: Mapping[str, Figure], read: LogFigures, *, counted: bool | None) -> tuple[Part, ...]:
    """Divide the card into what the share holds, what is left of it, and what is outside.

    Args:
        figures: measured and derived figures by name.
        read: what the log prints itself.
        counted: whether the estimate of CUDA graphs was taken off the KV cache.

    Returns:
        Nothing where fewer than two pieces are known: one piece is no picture.
    """
    parts: list[Part] = []
    reached = 0.0
    for kind, words, name in _names(figures, read, counted=counted):
        if name in figures and figures[name].value > 0:
            parts.append(Part(kind, words, figures[name], reached))
            reached += figures[name].value
    left = figures.get("kv_available_bytes")
    if left is None and not parts:
        return _gate_parts(figures)
    if left and left.value > 0:
        parts.append(Part("kv", "KV cache", left, reached))
        reached += left.value
    elif left and left.value < 0:
        parts.append(Part("missing", "over the share", _negated(left), reached + left.value))
        reached += left.value
    total, share = figures.get("capacity_bytes"), figures.get("budget_bytes")
    if total and share and total.value > share.value and "kv_memory_flag_bytes" not in figures:
        guess = "estimated" in (total.provenance, share.provenance)
        size = Figure(
            total.value - share.value, "bytes", "estimated" if guess else "derived", "total memory - the share"
        )
        parts.append(Part("outside", "outside the share", size, share.value))
    return tuple(parts) if len(parts) > 1 else ()


def _names(figures: Mapping[str, Figure], read: LogFigures, *, counted: bool | None) -> list[tuple[PartKind, str, str]]:
    if "FA134" in read.codes.values() and "peak_torch_bytes" in figures:
        # 0.6.4 prints the weights within torch's peak, and other processes within the rest.
        return [
            ("weights", "weights and activation peak", "peak_torch_bytes"),
            ("non_torch", "non-torch, other processes", "non_torch_bytes"),
        ]
    named: list[tuple[PartKind, str, str]]
    if "consumed_bytes" in figures:
        named = [("weights", "weights and non-torch", "consumed_bytes")]
    else:
        named = [("weights", "weights", "weights_bytes"), ("non_torch", "non-torch", "non_torch_bytes")]
    named.append(("activations", "activation peak", "activation_peak_bytes"))
    if counted:
        named.append(("graphs", "CUDA graphs, estimated", "cudagraph_estimate_bytes"))
    return [*named, ("other", "not printed apart", "unprinted_bytes")]


def _negated(figure: Figure) -> Figure:
    low = None if figure.high is None else -figure.high
    high = None if figure.low is None else -figure.low
    return Figure(-figure.value, figure.unit, figure.provenance, figure.how, low, high)


def _gate_parts(figures: Mapping[str, Figure]) -> tuple[Part, ...]:
    """Divide a card that the start gate refused: what was taken before, what was free, what is missing."""
    total, free, share = (figures.get(name) for name in ("capacity_bytes", "free_bytes", "budget_bytes"))
    if not total or not free or not 0 < free.value <= total.value:
        return ()
    parts = []
    if total.value > free.value:
        taken = Figure(total.value - free.value, "bytes", "derived", "total memory - free at start")
        parts.append(Part("others", "taken before the start", taken))
    if share:
        parts.append(Part("other", "the engine's share", share, total.value - free.value))
    else:
        parts.append(Part("free", "free at start", free, total.value - free.value))
    if share and share.value > free.value:
        short = Figure(share.value - free.value, "bytes", "derived", "the share - free at start")
        parts.append(Part("missing", "over what is free", short, total.value))
    return tuple(parts) if len(parts) > 1 else ()


def use_of(figures: Mapping[str, Figure], read: LogFigures) -> PoolUse | None:
    """Hold what was set aside for the KV cache against the highest usage that a statistics line prints."""
    usage = read.usage
    if usage is None:
        return None
    share = usage.peak_percent / 100
    pool, tokens = figures.get("kv_available_bytes"), figures.get("kv_tokens")
    if pool is not None and pool.value <= 0:
        pool = None

    def part(of: Figure | None, of_it: float, how: str) -> Figure | None:
        if of is None:
            return None
        return Figure(of.value * of_it, of.unit, "estimated" if of.provenance == "estimated" else "derived", how)

    return PoolUse(
        share,
        usage.peak_line,
        usage.readings,
        usage.running,
        pool,
        part(pool, share, "highest printed usage x pool"),
        part(pool, 1 - share, "pool - highest printed usage"),
        tokens,
        part(tokens, share, "highest printed usage x tokens"),
    )
