"""A whole budget: what the KV cache gets on a card, how it is laid out, what it holds, whether the engine starts."""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.kv import Engine, KvLayout, Pool, kv_layout, pool
from oortriage.budget.longest import longest_request
from oortriage.budget.memory import Available
from oortriage.budget.model import Model
from oortriage.budget.pool import check_count
from oortriage.budget.scheduler import Usage, scheduler_defaults
from oortriage.errors import UsageError

SCHEMA_VERSION = 1
Verdict = Literal["starts", "starts_but_cannot_serve", "refused", "undetermined"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's flags as far as they decide the KV cache. None and ``auto``: the release's own choice."""

    version: str
    dtype: str = "auto"
    kv_dtype: str = "auto"
    block_size: int | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    tp: int = 1
    pp: int = 1
    dcp: int = 1
    pcp: int = 1
    hybrid: bool = True
    engine: Engine | None = None
    attention_backend: str = ""
    blocks_override: int | None = None
    usage: Usage = "server"
    #: The card as a driver prints its name, and its memory in bytes; what the release schedules hangs on both.
    card: str = ""
    total_bytes: float | None = None
    #: The card's compute capability, such as ``7.5``; empty where it is not known.
    capability: str = ""


class GroupRow(msgspec.Struct, frozen=True):
    """Groups of layers with a block table of their own: ``groups`` alike. Bytes, tokens."""

    kind: str
    groups: int
    layers: int
    page_bytes: int
    block_size: int
    window: int = 0


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Every figure has its unit, where it comes from and how; see the fields of ``figure.Figure``.

    ``memory`` is there where the card's memory was worked out; else the bytes for the KV cache were given.
    """

    schema_version: int
    model: str
    architecture: str
    vllm: str
    rules_from: str
    engine: Engine
    verdict: Verdict
    sentence: str
    dtype: str
    kv_cache_dtype: str
    tp: int
    pp: int
    context_ranks: int
    max_model_len: int
    block_size: Figure
    max_num_batched_tokens: Figure
    max_num_seqs: Figure
    memory: Available | None
    kv_memory: Figure
    kv_bytes_per_token: Figure
    num_blocks: Figure
    kv_tokens: Figure
    max_concurrency: Figure
    blocks_per_request: Figure
    needed_bytes: Figure
    #: The longest request with which the engine starts and serves it; 0 for none.
    largest_max_model_len: Figure
    admission: str
    hybrid: bool
    groups: tuple[GroupRow, ...]
    traps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 the engine starts and serves, 1 it does not, 3 an estimate leaves it open."""
        return {"starts": 0, "starts_but_cannot_serve": 1, "refused": 1, "undetermined": 3}[self.verdict]


class Planned(msgspec.Struct, frozen=True):
    """What is known before any byte is counted: the layout, the length and the step."""

    model: Model
    settings: Settings
    layout: KvLayout
    max_model_len: int
    max_num_batched_tokens: Figure
    max_num_seqs: Figure


def prepare(model: Model, settings: Settings) -> Planned:
    """Lay out the cache, and fill in what nobody said.

    Raises:
        UsageError: settings that the release does not take, or no length anywhere.
        UnknownLayoutError: the config does not tell how the cache is laid out.
    """
    layout = kv_layout(
        model,
        settings.version,
        dtype=settings.dtype,
        kv_dtype=settings.kv_dtype,
        block_size=settings.block_size,
        tp=settings.tp,
        pp=settings.pp,
        dcp=settings.dcp,
        pcp=settings.pcp,
        hybrid=settings.hybrid,
        engine=settings.engine,
        attention_backend=settings.attention_backend,
        capability=settings.capability,
    )
    for name in ("max_model_len", "max_num_batched_tokens", "max_num_seqs"):
        said = getattr(settings, name)
        if said is not None:
            check_count(name, said)
    length = settings.max_model_len or model.max_position_embeddings
    if not length:
        raise UsageError("the config does not say how long a request may be: --max-model-len 8192")
    step = scheduler_defaults(
        settings.version,
        total_bytes=settings.total_bytes,
        card=settings.card,
        usage=settings.usage,
        max_model_len=length,
        max_num_seqs=settings.max_num_seqs,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        engine=layout.engine,
    )
    return Planned(model, settings, layout, length, step.max_num_batched_tokens, step.max_num_seqs)


def budget(planned: Planned, kv_memory: Figure, *, name: str, memory: Available | None = None) -> Budget:
    """Put the budget together from the bytes that one rank has for the KV cache; ``name`` is the model's.

    Raises:
        UsageError: bytes that are no number.
    """
    layout = planned.layout
    held = pool(
        layout,
        kv_memory,
        max_model_len=planned.max_model_len,
        max_num_batched_tokens=int(planned.max_num_batched_tokens.value),
        blocks_override=planned.settings.blocks_override,
    )
    gate = memory.gate if memory else None
    verdict = "refused" if gate and not gate.passes else _verdict(held)
    given = planned.settings.block_size == layout.block_size
    return Budget(
        schema_version=SCHEMA_VERSION,
        model=name,
        architecture=planned.model.architecture or planned.model.model_type,
        vllm=layout.version,
        rules_from=layout.rules_from,
        engine=layout.engine,
        verdict=verdict,
        sentence=gate.message.rstrip(".") if gate and not gate.passes else _sentence(verdict, held),
        dtype=layout.dtype,
        kv_cache_dtype=layout.kv_dtype,
        tp=layout.tp,
        pp=layout.pp,
        context_ranks=layout.context_ranks,
        max_model_len=planned.max_model_len,
        block_size=Figure(layout.block_size, "tokens", "given" if given else "derived", layout.block_size_from),
        max_num_batched_tokens=planned.max_num_batched_tokens,
        max_num_seqs=planned.max_num_seqs,
        memory=memory,
        kv_memory=held.available_bytes,
        kv_bytes_per_token=layout.bytes_per_token,
        num_blocks=held.num_blocks,
        kv_tokens=held.kv_tokens,
        max_concurrency=held.max_concurrency,
        blocks_per_request=held.blocks_per_request,
        needed_bytes=held.needed_bytes,
        largest_max_model_len=_longest(planned, kv_memory),
        admission=held.admission,
        hybrid=layout.hybrid and len(layout.groups) > 1,
        groups=_rows(layout),
        traps=held.traps,
        notes=tuple(
            dict.fromkeys([*_length_notes(planned), *layout.notes, *held.notes, *(memory.notes if memory else ())])
        ),
    )


def _longest(planned: Planned, kv_memory: Figure) -> Figure:
    """Find the longest request that this pool serves, up to the model's own length."""
    own = planned.model.max_position_embeddings
    ceiling = max(own, planned.max_model_len)

    def longest(size: float) -> int:
        return longest_request(
            planned.layout,
            size,
            ceiling=ceiling,
            max_num_batched_tokens=int(planned.max_num_batched_tokens.value),
            blocks_override=planned.settings.blocks_override,
        )

    found = longest(kv_memory.value)
    words = "as long as the model goes" if found == ceiling else "the longest that starts and is served"
    if kv_memory.provenance != "estimated":
        return Figure(found, "tokens", "derived", words)
    ends = [longest(end) for end in (kv_memory.low, kv_memory.high) if end is not None]
    return Figure(found, "tokens", "estimated", words, *((min(ends), max(ends)) if ends else ()))


def _rows(layout: KvLayout) -> tuple[GroupRow, ...]:
    """List the groups; those alike are one row. Layers are those of all pipeline stages."""
    rows: dict[GroupRow, int] = {}
    for group in layout.groups:
        layers = sum(group.layers(stage) for stage in range(len(layout.stages)))
        row = GroupRow(group.page.kind, 1, layers, group.page.bytes, group.page.block_size, group.page.window)
        rows[row] = rows.get(row, 0) + 1
    return tuple(msgspec.structs.replace(row, groups=count) for row, count in rows.items())


def _length_notes(planned: Planned) -> list[str]:
    own = planned.model.max_position_embeddings
    if not own or planned.max_model_len <= own:
        return []
    said = f"the config says {own:,} positions: vLLM refuses more unless rope scaling stretches them"
    return [f"{said}, or VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 is set"]


def _verdict(held: Pool) -> Verdict:
    if held.admitted is None:
        return "undetermined"
    if not held.admitted:
        return "refused"
    if held.serves is None:
        return "undetermined"
    return "starts" if held.serves else "starts_but_cannot_serve"


def _sentence(verdict: Verdict, held: Pool) -> str:
    need, have = held.needed_bytes.value, held.available_bytes.value
    length = f"{held.max_model_len:,}"
    if verdict == "refused":
        if have <= 0:
            return "The engine does not start: nothing is left for the KV cache"
        if held.num_blocks.value < 1:
            return "The engine does not start: not one block fits"
        return f"The engine does not start: one request of {length} tokens is taken for larger than the pool"
    if verdict == "starts_but_cannot_serve":
        return f"The engine starts, but a request of {length} tokens cannot be served"
    if verdict == "undetermined" and held.admitted:
        return f"The engine starts; the estimates leave it open whether a request of {length} tokens can be served"
    if verdict == "undetermined":
        return f"The estimates leave it open whether the engine starts with requests of {length} tokens"
    spare = f"{need / have:.1%} of the pool" if have > 0 else "the pool"
    return f"The engine starts: one request of {length} tokens takes {spare}"
