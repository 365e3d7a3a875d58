"""WARPS2: a candidate that keeps the tile and launches with two warps."""

from __future__ import annotations

from oortriage.fix.rules._interface import Condition, Decision, Rule
from oortriage.fix.rules.tile16 import REASON, REPORTS, TARGET

WARPS2 = Rule(
    name="warps2",
    title="WARPS2",
    summary="two warps instead of four where TILE16 would take a smaller tile",
    conditions=(*TARGET, Condition("tile", 32, "a K/V tile of 32")),
    change=Decision(num_warps=2),
    reason=f"{REASON} With two warps the compiler lays the same tile out in 49,152.",
    reports=REPORTS,
    since="0.11.0",
    proof=(
        "compiled for sm_75: 49,152 bytes with tile 32 and two warps",
        (
            "on an H200 that plays a T4 (code for sm_90), against TILE16: 1.26 times as fast in full-attention layers, "
            "0.30 times in sliding ones, 0.61 over all (docs/evidence/cost.md)"
        ),
    ),
    cautions=(
        "sliding layers fit without it from 0.14.1 on, and with two warps they are slower",
        (
            "ptxas for sm_75: 255 registers and 1,932 / 1,636 bytes of spill stores / loads a thread, which the time "
            "on an H200 does not show: a candidate until a real T4 has run it"
        ),
    ),
)
