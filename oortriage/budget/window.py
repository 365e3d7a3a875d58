"""Which shares of a card work: enough for the KV cache, and no more than is free when the engine starts."""

from __future__ import annotations

import math

import msgspec

from oortriage.budget.log_budget import LogBudget
from oortriage.budget.releases import before
from oortriage.budget.span import Span
from oortriage.budget.versions import GATE_SINCE
from oortriage.evidence.values import format_bytes

#: Where nothing is known of what else takes memory, no share above this is proposed: the driver's context and
#: libraries take their part of a card before the engine measures.
HIGHEST = 0.97


class Window(msgspec.Struct, frozen=True):
    """Shares of the card (0 to 1) that work: from ``low`` (the KV cache needs it) to ``high`` (the card allows it).

    ``high_from`` says what sets the upper end; ``high_known`` whether that was printed.
    """

    low: float
    high: float
    high_from: str
    high_known: bool

    @property
    def is_open(self) -> bool:
        """Whether any share lies in it."""
        return self.low <= self.high + 1e-9


def size_words(size: Span | float) -> str:
    """Write bytes for a person."""
    return format_bytes(round(size.value if isinstance(size, Span) else size))


def window(budget: LogBudget, short: Span) -> Window | None:
    """Return the shares of the card that leave the KV cache ``short`` bytes more; None without card or share.

    ``short`` may be negative: then less of the card would do. The upper end is the start gate where what was free
    is printed, the CUDA graphs where they are outside of the share, and never more than leaves a little.
    """
    total, now = budget.span("capacity_bytes"), budget.value("gpu_memory_utilization")
    if not total or not now or total.low <= 0:
        return None
    low = now + (short.high / total.low if short.high > 0 else short.high / total.high)
    ends = [(HIGHEST, "some of every card is taken before the engine measures", False)]
    free = budget.value("free_bytes")
    if free is not None and 0 < free <= total.value and not before(budget.version, GATE_SINCE.since):
        ends.append((free / total.value, f"{size_words(free)} of {size_words(total)} were free at start", True))
    graphs = budget.value("cudagraph_bytes")
    if graphs and not budget.graphs_counted:
        beside = 1 - graphs / total.value
        ends.append((beside, f"the CUDA graphs ({size_words(graphs)}) are captured outside of the share", True))
    high, reason, known = min(ends)
    return Window(max(0.0, low), high, reason, known)


def round_up(share: float, step: int = 100) -> float:
    """Round a share up to hundredths (``step`` 1000: thousandths)."""
    return math.ceil(share * step - 1e-7) / step


def round_down(share: float, step: int = 100) -> float:
    """Round a share down to hundredths."""
    return math.floor(share * step + 1e-7) / step
