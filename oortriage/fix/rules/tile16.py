"""TILE16: the default, as it was asked for."""

from __future__ import annotations

from oortriage.fix.rules._interface import Condition, Decision, Rule

CAPABILITY = Condition("capability", (7, 5), "compute capability 7.5")
HEAD = Condition("head_size", 256, "head size 256")
Q_WIDTH = Condition("q_bytes", 4, "queries of 4 bytes an element (float32)")
KV_WIDTH = Condition("kv_bytes", 4, "keys and values of 4 bytes an element (float32)")
#: The shape that overflows on a T4.
TARGET = (CAPABILITY, HEAD, Q_WIDTH, KV_WIDTH)

REASON = (
    "vLLM's Triton attention takes a K/V tile of 32 for every prefill, whatever the card. In FP32 with head size 256 "
    "a full-attention layer then needs 16,384 (Q) + 32,768 (K) + 32,768 (V) = 81,920 bytes of shared memory, and "
    "compute capability 7.5 gives a block 65,536."
)
REPORTS = ("vllm-project/vllm#36802",)

TILE16 = Rule(
    name="tile16",
    title="TILE16",
    summary="a K/V tile of 16 for FP32 with head size 256 on compute capability 7.5",
    conditions=TARGET,
    change=Decision(tile=16),
    reason=f"{REASON} With 16 it needs 49,152.",
    reports=REPORTS,
    since="0.11.0",
    proof=(
        "compiled from the real files of vLLM 0.11.0 to 0.33.0: 81,920 bytes before, 49,152 after",
        "ptxas for sm_75: 168 registers a thread, no spills (tile 32: 184, none)",
        "a whole vLLM engine on an H200 that plays a T4: fails before, 32 tokens after, the same as transformers'",
    ),
    cautions=(
        (
            "it also takes sliding layers from 32 to 16, which fit without it from 0.14.1 on; on an H200 that "
            "plays a T4 they ran 1.19 times as fast with it"
        ),
        "no real T4 has run it; its speed there is not known",
    ),
)
