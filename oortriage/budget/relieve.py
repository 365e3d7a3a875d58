"""An allocation failed beside the KV pool: the largest share of the card that leaves it room."""

from __future__ import annotations

from oortriage.budget.log_budget import LogBudget
from oortriage.budget.solution import Solution
from oortriage.budget.solve import Want, solve
from oortriage.budget.window import round_down
from oortriage.evidence.values import format_bytes


def relieve(budget: LogBudget, requested: float, free: float, capacity: float) -> Solution | None:
    """Solve for the share with which a failed allocation fits.

    The KV pool is what the share leaves, so a smaller share makes room for what is allocated beside the pool: CUDA
    graphs before 0.20.0, the sampler's buffers, activations above the profiled peak. Sizes in bytes.

    Returns:
        ``no_window`` where that share no longer holds one request of full length; None where nothing is missing, the
        share is unknown, or the KV memory was set by hand.
    """
    now = budget.value("gpu_memory_utilization")
    short = requested - free
    if not now or capacity <= 0 or short <= 0 or requested > capacity or "kv_memory_flag_bytes" in budget.figures:
        return None
    value = round_down(now - short / capacity)
    if value <= 0:
        return None
    moved = (now - value) * capacity
    left = budget.span("kv_available_bytes")
    least = _least(budget)
    if left and left.high - moved <= 0:
        why = f"it would have to fall to {value:g}, and then nothing of the {format_bytes(round(left.value))} is left"
        return Solution(
            "no_window", "", f"no smaller --gpu-memory-utilization works: {why} for the KV cache", "derived"
        )
    if least and value < least - 1e-9:
        why = f"it would have to fall to {value:g}, and one request of full length needs {least:g} or more"
        return Solution("no_window", "", f"no smaller --gpu-memory-utilization works: {why}", "estimated", least)
    keeps = f"; the KV cache keeps about {format_bytes(round(left.value - moved))}" if left else ""
    return Solution(
        "utilization",
        f"--gpu-memory-utilization {value:g}",
        f"leaves {format_bytes(round(moved))} more outside of the KV cache, where {format_bytes(round(short))} were "
        f"missing (now {now:g}); what is allocated next may need more{keeps}",
        "estimated",  # the next allocation may need more
        value,
        "fewer KV tokens",
        "safe",
        "the same load passes",
    )


def _least(budget: LogBudget) -> float | None:
    """Return the smallest share that still holds one request of full length."""
    found = [one.value for one in solve(budget, Want()) if one.kind == "utilization" and one.value is not None]
    return found[0] if found else None
