"""The KV cache's layout on one rank, and how much of it a given number of bytes holds, as vLLM computes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.model import LayerKind, Model

Engine = Literal["V0", "V1"]


class KvGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Layers that share a block table. ``layers`` real ones on the fullest rank; ``window`` in tokens."""

    kind: LayerKind
    layers: int
    page_bytes: int
    block_size: int
    window: int = 0


class KvLayout(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one rank lays out the cache. Pages and blocks in bytes; ``block_size`` in tokens.

    ``group_size`` layers share one allocation, and ``bytes_per_block`` is what one block of the pool takes:
    num_blocks = available // bytes_per_block. ``rules_from`` is the known release whose rules were taken.
    """

    version: str
    rules_from: str
    engine: Engine
    dtype: str
    kv_dtype: str
    block_size: int
    block_size_from: str
    tp: int
    pp: int
    context_parallel: int
    hybrid: bool
    groups: tuple[KvGroup, ...]
    group_size: int
    bytes_per_block: int
    #: Bytes a token on one rank when every layer keeps every token.
    bytes_per_token: Figure
    notes: tuple[str, ...] = ()


class Pool(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a KV pool holds. ``admitted``: whether the engine starts at this length; None: could not tell.

    ``traps`` tell where the release's own check and the truth differ.
    """

    available_bytes: Figure
    num_blocks: Figure
    #: As the release logs it.
    kv_tokens: Figure
    max_concurrency: Figure
    blocks_per_request: Figure
    needed_bytes: Figure
    max_model_len: int
    admitted: bool | None
    admission: str
    traps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def kv_layout(
    model: Model,
    version: str,
    *,
    dtype: str = "auto",
    kv_dtype: str = "auto",
    block_size: int | None = None,
    tp: int = 1,
    pp: int = 1,
    dcp: int = 1,
    pcp: int = 1,
    hybrid: bool = True,
    engine: Engine | None = None,
    attention_backend: str = "",
    pp_partition: Sequence[int] = (),
) -> KvLayout:
    """Lay out the KV cache of one rank as vLLM ``version`` does.

    ``dtype`` is the model's type (``auto``: the config's), ``kv_dtype`` that of the cache, ``block_size`` tokens
    (None: the release's default for this model), ``hybrid`` False is ``--disable-hybrid-kv-cache-manager``.

    Raises:
        UsageError: the release does not know the type or block size, or the numbers do not go together.
    """
    raise NotImplementedError


def pool(
    layout: KvLayout,
    available_bytes: Figure | float | Sequence[float],
    *,
    max_model_len: int,
    max_num_batched_tokens: int,
    blocks_override: int | None = None,
    async_scheduling: bool | None = None,
) -> Pool:
    """Divide ``available_bytes`` a rank into blocks, and say whether a request of ``max_model_len`` tokens fits.

    Several numbers are one a rank; the smallest counts, as the engine takes the fewest blocks of all ranks.

    Raises:
        UsageError: a length below one token, or bytes that are no number.
    """
    raise NotImplementedError
