"""The longest request that a pool serves."""

from __future__ import annotations

from oortriage.budget.figure import Figure
from oortriage.budget.layout import KvLayout
from oortriage.budget.pool import pool

#: Where the model's config states no length.
_ANY_LENGTH = 1 << 24


def longest_request(
    layout: KvLayout,
    available_bytes: Figure | float,
    *,
    ceiling: int = 0,
    max_num_batched_tokens: int = 2048,
    blocks_override: int | None = None,
) -> int:
    """Return the most tokens, up to ``ceiling``, with which the engine starts and serves a request; 0 for none.

    Both the release's start check and the blocks of one request grow with the length, so halving finds it. The low
    end of an estimate counts. ``max_num_batched_tokens`` is held: in releases where it follows the length, a shorter
    request may have less in flight and so fit a little sooner.

    Raises:
        UsageError: bytes or counts that are no numbers.
    """
    size = available_bytes
    if isinstance(size, Figure):
        size = size.value if size.low is None else size.low

    def serves(length: int) -> bool:
        held = pool(
            layout,
            size,
            max_model_len=length,
            max_num_batched_tokens=max_num_batched_tokens,
            blocks_override=blocks_override,
        )
        return bool(held.admitted and held.serves)

    least, most = 0, ceiling or _ANY_LENGTH
    while least < most:
        middle = (least + most + 1) // 2
        if serves(middle):
            least = middle
        else:
            most = middle - 1
    return least
