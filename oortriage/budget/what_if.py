"""A table of what-ifs: shares of the card, lengths, block sizes and KV types, and which of them a release refuses."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec

from oortriage.budget import versions
from oortriage.budget.figure import Figure
from oortriage.budget.kv import kv_layout, pool
from oortriage.budget.log_budget import LogBudget
from oortriage.budget.plan import Planned
from oortriage.budget.solve_plan import Card
from oortriage.errors import OortriageError, UsageError

#: More rows than this nobody reads.
MOST_ROWS = 400
_HALVES = {"fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "float16": 2.0, "bfloat16": 2.0, "auto": 0.0}


class Axes(msgspec.Struct, frozen=True):
    """What is varied; an empty axis stays as it is. Shares 0 to 1, tokens, tokens a block, names of types."""

    utilization: tuple[float, ...] = ()
    max_model_len: tuple[int, ...] = ()
    block_size: tuple[int, ...] = ()
    kv_dtype: tuple[str, ...] = ()


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One combination. ``refused`` says what the release does not take; then there are no figures.

    ``starts`` None: an estimate leaves it open. Utilisation 0: it plays no part.
    """

    utilization: float
    max_model_len: int
    block_size: int
    kv_dtype: str
    kv_memory: Figure | None = None
    kv_tokens: Figure | None = None
    max_concurrency: Figure | None = None
    starts: bool | None = None
    refused: str = ""


class Held(msgspec.Struct, frozen=True):
    """What a size of the pool holds."""

    tokens: Figure
    concurrency: Figure
    starts: bool | None


Holder = Callable[[Figure, int, int, str], Held]


def what_if(version: str, now: Row, axes: Axes, kv_memory: Figure, card: Card | None, hold: Holder) -> tuple[Row, ...]:
    """Go through every combination.

    Args:
        version: the release.
        now: the setting in force, for the axes that stay.
        axes: what is varied.
        kv_memory: bytes for the KV cache at the share in force.
        card: to move the share; without one it cannot be moved.
        hold: what a size of the pool holds, for a length, a block size and a type.

    Raises:
        UsageError: more rows than anyone reads, or shares to vary without a card's memory.
    """
    shares = axes.utilization or (now.utilization,)
    if axes.utilization and card is None:
        raise UsageError("the share of the card can only be varied where the card's memory and share are known")
    grid = list(
        itertools.product(
            shares,
            axes.max_model_len or (now.max_model_len,),
            axes.block_size or (now.block_size,),
            axes.kv_dtype or (now.kv_dtype,),
        )
    )
    if len(grid) > MOST_ROWS:
        raise UsageError(f"{len(grid):,} combinations; at most {MOST_ROWS} make a table")
    rows = []
    for share, length, block, kv_dtype in grid:
        refused = refusal(version, share if axes.utilization else None, length, block, kv_dtype)
        row = Row(share, length, block, kv_dtype, refused=refused)
        if not refused:
            size = _at(kv_memory, share, card) if axes.utilization else kv_memory
            try:
                held = hold(size, length, block, kv_dtype)
            except OortriageError as problem:
                row = msgspec.structs.replace(row, refused=str(problem))
            else:
                row = msgspec.structs.replace(
                    row, kv_memory=size, kv_tokens=held.tokens, max_concurrency=held.concurrency, starts=held.starts
                )
        rows.append(row)
    return tuple(rows)


def refusal(version: str, share: float | None, length: int, block: int, kv_dtype: str) -> str:
    """Say what a release does not take of a setting; empty where it takes it all, or nothing is known of it."""
    if share is not None and not 0 < share <= 1:
        return f"--gpu-memory-utilization {share:g}: above 0 and at most 1"
    if length < 1:
        return f"--max-model-len {length}: at least 1"
    if not version:
        return ""
    try:
        sizes, types = versions.block_size_choices(version), versions.kv_dtypes(version)
    except UsageError:
        return ""
    if block < 1 or (sizes and block not in sizes):
        takes = ", ".join(map(str, sizes)) if sizes else "any number of 1 or more"
        return f"--block-size {block}: {version} takes {takes}"
    if kv_dtype not in types:
        return f"--kv-cache-dtype {kv_dtype[:40]}: {version} takes {', '.join(types)}"
    return ""


def _at(kv_memory: Figure, share: float, card: Card | None) -> Figure:
    """Move the KV memory with the share: the rest of the budget stays."""
    if card is None:
        return kv_memory
    moved = (share - card.utilization) * card.total.value
    guess = "estimated" in (kv_memory.provenance, card.total.provenance)
    return Figure(
        kv_memory.value + moved,
        "bytes",
        "estimated" if guess else "derived",
        f"KV memory {'+' if moved >= 0 else '-'} {abs(share - card.utilization):.3g} of the card",
        None if kv_memory.low is None else kv_memory.low + moved,
        None if kv_memory.high is None else kv_memory.high + moved,
    )


def by_layout(planned: Planned) -> Holder:
    """Hold by the model's own layout, laid out again for each block size and type."""
    settings = planned.settings

    def hold(size: Figure, length: int, block: int, kv_dtype: str) -> Held:
        layout = kv_layout(
            planned.model, settings.version, dtype=settings.dtype, kv_dtype=kv_dtype,
            block_size=block if block != planned.layout.block_size else settings.block_size,
            tp=settings.tp, pp=settings.pp, dcp=settings.dcp, pcp=settings.pcp, hybrid=settings.hybrid,
            engine=settings.engine, attention_backend=settings.attention_backend,
        )  # fmt: skip
        held = pool(
            layout, size, max_model_len=length, max_num_batched_tokens=int(planned.max_num_batched_tokens.value),
            blocks_override=settings.blocks_override,
        )  # fmt: skip
        starts = None if held.admitted is None or held.serves is None else bool(held.admitted and held.serves)
        return Held(held.kv_tokens, held.max_concurrency, starts)

    return hold


def by_tokens(found: LogBudget) -> Holder | None:
    """Hold by the log's own bytes a token, an estimate: without the model's shape every token counts the same."""
    each = found.figures.get("kv_bytes_per_token")
    if each is None or each.value <= 0:
        return None
    present = found.words.get("kv_cache_dtype", "auto")
    element = 4.0 if found.words.get("dtype", "").removeprefix("torch.") in ("float32", "float") else 2.0

    def width(name: str) -> float:
        if name not in _HALVES:
            raise UsageError(f"--kv-cache-dtype {name[:40]}: its bytes cannot be told without the model's config")
        return _HALVES[name] or element

    def hold(size: Figure, length: int, block: int, kv_dtype: str) -> Held:
        token = each.value * width(kv_dtype) / width(present)
        blocks = max(0.0, size.value) // (token * block)
        tokens = blocks * block
        how = "KV memory / the log's bytes a token"
        return Held(
            Figure(tokens, "tokens", "estimated", how),
            Figure(tokens / length, "requests", "estimated", "tokens / length"),
            None if tokens == length else tokens > length,
        )

    return hold
