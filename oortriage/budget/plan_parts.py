"""A planner's memory as pieces of the card, end to end."""

from __future__ import annotations

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Part, PartKind
from oortriage.budget.memory import Available


def plan_parts(memory: Available) -> tuple[Part, ...]:
    """Divide the card as the release does: what the share holds, what is left for the KV cache, what is outside."""
    parts: list[Part] = []
    reached = 0.0
    named: list[tuple[PartKind, str, Figure | None]] = [
        ("weights", "weights", memory.weights),
        ("non_torch", "non-torch", memory.non_torch),
        ("activations", "activation peak", memory.activation),
        ("graphs", "CUDA graphs", memory.graphs if memory.graphs_charged else None),
    ]
    if memory.formula == "device_peak":
        named.append(("others", "other processes", memory.others))
    for kind, words, figure in named:
        if figure is not None and figure.value > 0:
            parts.append(Part(kind, words, figure, reached))
            reached += figure.value
    left = memory.available
    if left.value > 0:
        parts.append(Part("kv", "KV cache", left, reached))
    elif left.value < 0:
        size = Figure(-left.value, "bytes", left.provenance, left.how)
        parts.append(Part("missing", "over the share", size, reached + left.value))
    if memory.formula != "given" and memory.outside.value > 0:
        parts.append(Part("outside", "outside the share", memory.outside, memory.requested.value))
    return tuple(parts)
