"""TILE16-FULL: the smallest change that cures a T4."""

from __future__ import annotations

from oortriage.fix.rules._interface import Condition, Decision, Rule
from oortriage.fix.rules.tile16 import REASON, REPORTS, TARGET

NO_WINDOW = Condition("window", 0, "full attention (no sliding window)")

TILE16_FULL = Rule(
    name="tile16-full",
    title="TILE16-FULL",
    summary="TILE16 for full-attention layers only; sliding layers keep their tile",
    conditions=(*TARGET, NO_WINDOW),
    change=Decision(tile=16),
    reason=f"{REASON} Sliding layers need 51,200 from 0.14.1 on, and fit.",
    reports=REPORTS,
    since="0.14.1",
    proof=(
        (
            "compiled from the real files of vLLM 0.14.1 to 0.33.0: full attention 81,920 before, 49,152 after; "
            "sliding layers 51,200 before and after"
        ),
        "a whole vLLM engine on an H200 that plays a T4: the same 32 tokens as TILE16",
    ),
    cautions=(
        (
            "on an H200 that plays a T4 its sliding layers, which keep tile 32, ran 0.84 times as fast as with TILE16 "
            "(docs/evidence/cost.md); ptxas for sm_75 spills 400 / 380 bytes a thread there, and none with tile 16"
        ),
        "up to 0.13.0 sliding layers overflow as well (81,920): there it is no cure, take TILE16",
        "no real T4 has run it",
    ),
)
