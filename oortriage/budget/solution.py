"""One way to serve what is asked for: what to type, what comes of it, and what it costs."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Provenance

Kind = Literal["fits", "length", "auto", "utilization", "kv_memory", "kv_dtype", "requests", "no_window"]


class Solution(msgspec.Struct, frozen=True, omit_defaults=True):
    """One way to it. ``change`` is what to type, empty for ``fits`` and ``no_window``; ``value`` its number."""

    kind: Kind
    change: str
    effect: str
    provenance: Provenance
    value: float | None = None
    cost: str = ""
    safety: Literal["safe", "costs_speed", "changes_output", "risky"] = "safe"
    verify: str = ""
