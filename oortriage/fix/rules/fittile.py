"""FITTILE: for any card and shape; off unless asked for."""

from __future__ import annotations

from oortriage.fix.rules._interface import Rule

FITTILE = Rule(
    name="fittile",
    title="FITTILE",
    summary="the largest tile, not above the policy's own, whose exact requirement fits the card",
    conditions=(),
    change=None,
    reason=(
        "The tile policy knows no limit. The compiler says before a launch what a block needs; where that is more than "
        "the card gives, the tile is halved, down to 16 (32 for one-byte queries). Shapes that fit stay as they were."
    ),
    reports=("vllm-project/vllm#36802", "vllm-project/vllm#57712", "vllm-project/vllm#33846"),
    since="0.11.0",
    proof=(
        (
            "compiled from the real files: sm_75 FP32 head 256 81,920 to 49,152, head 512 98,304 to 65,536; sm_86, 89 "
            "and 120 FP32 head 256 sliding 116,992 to 66,688"
        ),
    ),
    cautions=(
        (
            "the requirement is asked of the compiler at the first launch of a shape: only the plugin can do that, "
            "not a patch of the policy's file"
        ),
        "no real T4 has run it",
    ),
)
