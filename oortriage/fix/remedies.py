"""What helps short of a patch, in the order to try, and from which vLLM release to which."""

from __future__ import annotations

import re

import msgspec


class Remedy(msgspec.Struct, frozen=True):
    """One thing to do instead. ``applies`` is None where the release is not known."""

    change: str
    condition: str
    note: str
    applies: bool | None


def remedies(version: str, head_size: int) -> list[Remedy]:
    """List what helps for a release; the first that applies is the one to try."""
    flex = "reported to overflow as well at head size 512" if head_size >= 512 else "not tried by us on a real T4"
    return [
        Remedy("--attention-backend FLEX_ATTENTION", "vLLM 0.13.0 or later", flex, _within(version, (0, 13), None)),
        Remedy(
            "VLLM_ATTENTION_BACKEND=FLEX_ATTENTION",
            "vLLM 0.11.2 to 0.14.1",
            flex,
            _within(version, (0, 11, 2), (0, 14, 1)),
        ),
        Remedy(
            "--block-size 16",
            "vLLM up to 0.10.2",
            "there the K/V tile is the KV cache's block; later releases choose it otherwise",
            _within(version, None, (0, 10, 2)),
        ),
        Remedy(
            "num_warps=2 (rule warps2)",
            "vLLM 0.11.0 or later",
            "49,152 bytes too, but the assembler spills on compute capability 7.5: a candidate",
            _within(version, (0, 11), None),
        ),
        Remedy("a card of compute capability 8.0 or later", "any release", "it also computes in bfloat16", True),
    ]


def _within(version: str, since: tuple[int, ...] | None, until: tuple[int, ...] | None) -> bool | None:
    found = re.match(r"\d+(?:\.\d+)*", version)
    if not found:
        return None
    parts = tuple(int(part) for part in found.group().split("."))
    return (since is None or parts >= since) and (until is None or parts <= until)
