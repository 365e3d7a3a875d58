"""The KV cache's layout on one rank, as a vLLM release would choose it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Literal

import msgspec

from oortriage.budget import versions
from oortriage.budget.figure import Figure
from oortriage.budget.groups import Group, Layers, count_pages, group_pages
from oortriage.budget.model import LayerShape, Model, UnknownLayoutError
from oortriage.budget.page import Page, cache_dtype, model_dtype, padded_mla, state_bytes, token_bytes
from oortriage.errors import UsageError

#: vLLM's old engine (until 0.10) and the present one.
Engine = Literal["V0", "V1"]
#: How often the state of a layer without attention is kept (``--mamba-cache-mode``).
StateMode = Literal["none", "align", "all"]
#: Blocks that MLA's kernels take, in tokens (vLLM 0.17.1 platforms/cuda.py; 0.22.1 v1/attention/backends/mla).
_MLA_BLOCKS = {
    "CUTLASS_MLA": 128, "FLASHMLA": 64, "FLASHMLA_SPARSE": 64, "FLASHINFER_MLA": 64, "FLASHINFER_MLA_SPARSE": 64,
    "FLASH_ATTN_MLA": 16, "TRITON_MLA": 16,
}  # fmt: skip
#: No machine has more ranks than this in one engine; more is a slip of the keyboard.
_MOST_RANKS = 4096
_MOST_BLOCK = 1 << 20
DEFAULT_BLOCK = 16


class KvLayout(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one rank lays out the cache. ``block_size`` in tokens.

    ``group_size`` layers of a stage share one allocation, and ``bytes_per_block`` is what one block of the pool takes
    on each pipeline stage: num_blocks = available // bytes_per_block. ``rules_from`` is the release that was read and
    whose rules were taken. ``stages`` are the layers of each stage before they were grouped.
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
    #: Ranks that share one context (dcp x pcp).
    context_ranks: int
    hybrid: bool
    groups: tuple[Group, ...]
    stages: tuple[tuple[Layers, ...], ...]
    group_size: tuple[int, ...]
    bytes_per_block: tuple[int, ...]
    #: Bytes of a token on the fullest rank, when every layer with a KV cache keeps it.
    bytes_per_token: Figure
    state_mode: str = "none"
    notes: tuple[str, ...] = ()

    @property
    def uniform(self) -> bool:
        """Whether one group holds all layers, so that tokens are blocks x block size."""
        return len(self.groups) == 1


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
    state_mode: StateMode | None = None,
    chunked_hybrid: bool = False,
    capability: str = "",
) -> KvLayout:
    """Lay out the KV cache of one rank as vLLM ``version`` does.

    Args:
        model: The model.
        version: The release.
        dtype: The model's type; ``auto`` is the config's.
        kv_dtype: ``--kv-cache-dtype``.
        block_size: Tokens; None is the release's choice for this model.
        tp: Tensor parallel ranks.
        pp: Pipeline stages.
        dcp: Ranks of decode context parallelism.
        pcp: Ranks of prefill context parallelism.
        hybrid: False is ``--disable-hybrid-kv-cache-manager`` (or what turns it off: KV events, most connectors).
        engine: Which engine, where a release has two.
        attention_backend: Its name, which decides the block size of MLA.
        pp_partition: Layers of each stage (``VLLM_PP_LAYER_PARTITION``).
        state_mode: ``--mamba-cache-mode``; None is the release's choice (``align`` where prefix caching is on).
        chunked_hybrid: ``VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE=1``.
        capability: The card's compute capability (``7.5``), where it is known: it decides what ``auto`` takes.

    Raises:
        UsageError: the release does not take such a setting, or the numbers do not go together.
        UnknownLayoutError: the config does not tell how the cache is laid out.
    """
    taken = versions.rules_from(version)
    chosen: Engine = engine or versions.default_engine(version)
    if not versions.has_engine(version, chosen):
        raise UsageError(f"vLLM {version} has no {chosen} engine")
    if model.unknown:
        raise UnknownLayoutError(f"{model.architecture or model.model_type or 'this model'}: {model.unknown[0]}")
    _check_ranks(model, version, chosen, tp=tp, pp=pp, dcp=dcp, pcp=pcp)
    if chosen == "V1":
        _check_kinds(model, version)
    dtype, *notes = model_dtype(model, dtype, version, capability)
    kv_dtype, note = cache_dtype(model, version, kv_dtype)
    notes = [one for one in (versions.between(version), *notes, note) if one]
    if state_mode is None:
        state_mode = _state_mode(model, version, notes)
    sizes = _Sizes(model, version, chosen, dtype=dtype, kv_dtype=kv_dtype, tp=tp, state_mode=state_mode)
    size, why = _block_size(model, sizes, block_size, attention_backend, state_mode, notes)
    stages = [[sizes.page(cache, size) for cache in caches] for caches in _stages(model, version, pp, pp_partition)]
    if chosen == "V0":
        stages = [[page for page in pages if page.kind != "state"] for pages in stages]
        if any(layer.state for shape in model.layers for layer in shape.caches()):
            notes.append("V0 keeps the states of layers without attention outside the KV cache")
        hybrid = False
    if hybrid and not chunked_hybrid and _chunked_turns_off(model, version):
        hybrid = False
        notes.append(f"{versions.CHUNKED_OFF_SINCE.value} ({versions.CHUNKED_OFF_SINCE.source})")
    extra: list[str] = []
    if chosen == "V0":
        groups = _v0_groups(stages)
    else:
        groups, extra = group_pages(stages, version, hybrid=hybrid)
    notes += _uneven(model, tp)
    ranks = range(len(stages))
    return KvLayout(
        version=version,
        rules_from=taken,
        engine=chosen,
        dtype=dtype,
        kv_dtype=kv_dtype,
        block_size=size,
        block_size_from=why,
        tp=tp,
        pp=pp,
        context_ranks=dcp * pcp,
        hybrid=hybrid and versions.holds(version, versions.HYBRID_SINCE),
        groups=groups,
        stages=tuple(count_pages(pages) for pages in stages),
        group_size=tuple(max((group.layers(rank) for group in groups), default=0) for rank in ranks),
        bytes_per_block=tuple(_block_bytes(groups, version, chosen, rank) for rank in ranks),
        bytes_per_token=_per_token(stages),
        state_mode=state_mode,
        notes=tuple(dict.fromkeys([*notes, *extra, *model.notes])),
    )


def _check_ranks(model: Model, version: str, engine: Engine, *, tp: int, pp: int, dcp: int, pcp: int) -> None:
    for name, value in (
        ("--tp", tp),
        ("--pp", pp),
        ("--decode-context-parallel-size", dcp),
        ("--prefill-context-parallel-size", pcp),
    ):
        if not 1 <= value <= _MOST_RANKS:
            raise UsageError(f"{name} {value}: not a number of ranks")
    if model.heads and model.heads % tp:
        raise UsageError(f"--tp {tp} does not divide the model's {model.heads} attention heads: vLLM refuses it")
    if pp > model.num_layers:
        raise UsageError(f"--pp {pp}: the model has {model.num_layers} layers only")
    if dcp * pcp == 1:
        return
    if engine == "V0" or versions.release(versions.rules_from(version)) < versions.release("0.10.2"):
        raise UsageError(f"vLLM {version} has no context parallelism; it is there from 0.10.2 on")
    if tp % dcp:
        raise UsageError(f"--decode-context-parallel-size {dcp} does not divide --tp {tp}: vLLM refuses it")
    if any(layer.kind == "sliding" for layer in model.layers):
        raise UsageError("context parallelism is not for a model with sliding windows: vLLM refuses it")


def _check_kinds(model: Model, version: str) -> None:
    """Refuse layers that the release's V1 does not know."""
    kinds = {cache.kind for layer in model.layers for cache in layer.caches()}
    for kind, fact in (("mla", versions.MLA_V1_SINCE), ("state", versions.STATE_V1_SINCE)):
        if kind in kinds and not versions.holds(version, fact):
            raise UsageError(f"vLLM {version}: {fact.value} from {fact.since} on only; --engine V0 is its way")


def _state_mode(model: Model, version: str, notes: list[str]) -> StateMode:
    """Choose how states are kept: with prefix caching, which is on for models that have attention too."""
    kinds = {cache.kind for layer in model.layers for cache in layer.caches()}
    if "state" not in kinds or kinds == {"state"} or not versions.holds(version, versions.STATE_ALIGN_SINCE):
        return "none"
    notes.append(f"{versions.STATE_ALIGN_SINCE.value}; with --no-enable-prefix-caching it is one")
    return "align"


class _Sizes:
    """The pages of a model on one rank."""

    def __init__(
        self, model: Model, version: str, engine: Engine, *, dtype: str, kv_dtype: str, tp: int, state_mode: str
    ) -> None:
        self.model, self.version, self.engine, self.tp = model, version, engine, tp
        self.dtype, self.kv_dtype, self.state_mode = dtype, kv_dtype, state_mode
        #: What a state's page is padded to, in bytes; 0 for no padding.
        self.state_page = 0

    def token(self, layer: LayerShape) -> int:
        """Return a token's bytes in an attention layer."""
        if layer.kind == "mla" and not versions.holds(self.version, versions.MLA_SINCE):
            return padded_mla(layer, self.model, self.tp, self.dtype, self.kv_dtype)
        return token_bytes(layer, tp=self.tp, dtype=self.dtype, kv_dtype=self.kv_dtype)

    def state(self, layer: LayerShape) -> int:
        """Return a state's bytes."""
        return state_bytes(layer, tp=self.tp, dtype=self.dtype)

    def page(self, layer: LayerShape, block_size: int) -> Page:
        """Return the page of a layer as the release sees it."""
        if layer.kind == "state":
            # without prefix caching one block of a state is as long as the longest request
            size = 0 if self.state_mode == "none" else block_size
            return Page("state", max(self.state(layer), self.state_page), size, key="state")
        kind = layer.kind
        if self.engine == "V0":
            kind = "mla" if kind == "mla" else "full"
        elif (kind == "sliding" and not versions.holds(self.version, versions.SLIDING_SINCE)) or (
            kind == "chunked" and not versions.holds(self.version, versions.CHUNKED_SINCE)
        ):
            kind = "full"
        heads = max(1, layer.kv_heads // self.tp)
        window = layer.window if kind in ("sliding", "chunked") else 0
        return Page(
            kind, block_size * self.token(layer), block_size, window, f"{heads}x{layer.head_size}+{layer.v_head_size}"
        )


def _block_size(
    model: Model, sizes: _Sizes, wanted: int | None, backend: str, state_mode: str, notes: list[str]
) -> tuple[int, str]:
    """Choose the block size in tokens, and say why."""
    version = sizes.version
    choices = versions.block_size_choices(version)
    if wanted is not None and (not 1 <= wanted <= _MOST_BLOCK or (choices and wanted not in choices)):
        taken = ", ".join(map(str, choices)) if choices else "any positive number"
        raise UsageError(f"--block-size {wanted}: vLLM {version} takes {taken}")
    size, why = (wanted, "given") if wanted is not None else (DEFAULT_BLOCK, "the default on CUDA")
    backend = backend.upper()
    chosen_late = versions.release(versions.rules_from(version)) >= versions.release("0.18.0")
    compressed = model.mla and sizes.engine == "V1" and versions.holds(version, versions.MLA_SINCE)
    if compressed:
        size, why = _mla_block(model, size, why, backend, late=chosen_late, given=wanted is not None, notes=notes)
    states = [cache for layer in model.layers for cache in layer.caches() if cache.kind == "state"]
    attending = [cache for layer in model.layers for cache in layer.caches() if cache.kind != "state"]
    if not states or not attending or sizes.engine == "V0":
        return size, why
    return _state_block(sizes, states[0], attending[0], size, why, state_mode, late=chosen_late, compressed=compressed)


def _mla_block(
    model: Model, size: int, why: str, backend: str, *, late: bool, given: bool, notes: list[str]
) -> tuple[int, str]:
    """Choose MLA's block size: its kernels take few (vLLM 0.17.1 platforms/cuda.py, 0.22.1 platforms/interface.py)."""
    sparse = bool(model.raw.get("index_topk"))
    if late and given:
        return size, why  # the release takes it, and cuts blocks for the kernel
    if backend in _MLA_BLOCKS:
        needed = _MLA_BLOCKS[backend]
        if late and backend.startswith("FLASHINFER_MLA"):
            needed = 32
    else:
        needed = 64 if sparse or not late else DEFAULT_BLOCK
        assumed = {64: "FLASHMLA or FLASHINFER_MLA", DEFAULT_BLOCK: "FLASH_ATTN_MLA or TRITON_MLA"}[needed]
        if not sparse:
            notes.append(f"block size {needed} assumes the backend {assumed}; say --attention-backend where it is not")
    if size % needed == 0:
        return size, why
    return needed, f"what {backend or 'the kernels of MLA'} takes"


def _state_block(
    sizes: _Sizes,
    state: LayerShape,
    attention: LayerShape,
    size: int,
    why: str,
    state_mode: str,
    *,
    late: bool,
    compressed: bool,
) -> tuple[int, str]:
    """Raise the block size until a page of attention holds a state (vLLM 0.17.1 model_executor/models/config.py)."""
    if state_mode == "all":
        raise UnknownLayoutError("--mamba-cache-mode all: the block size also hangs on the model's chunk size")
    step = max(size, DEFAULT_BLOCK) if late else 64 if compressed else DEFAULT_BLOCK
    token = sizes.token(attention)
    needed = step * ceil(sizes.state(state) / (step * token))
    if needed > size:
        size, why = needed, "a page of attention must hold a state"
    sizes.state_page = size * token
    return size, why


def _stages(model: Model, version: str, pp: int, partition: Sequence[int]) -> list[list[LayerShape]]:
    """Cut the layers for pipeline stages (vLLM 0.17.1 distributed/utils.py get_pp_indices); each stage's caches."""
    depth = model.num_layers
    if partition:
        if len(partition) != pp or sum(partition) != depth or min(partition) < 0:
            raise UsageError(f"the partition {list(partition)[:8]} does not cut {depth} layers into {pp} stages")
        counts = list(partition)
    else:
        counts = [depth // pp] * pp
        if versions.holds(version, versions.SPREAD_SINCE):
            for index in range(2, depth % pp + 2):  # the last stage also has the head: it gets none of the rest
                counts[-index] += 1
        else:
            counts[-1] += depth % pp
    starts = [sum(counts[:rank]) for rank in range(pp)]
    return [
        [cache for layer in model.layers[start : start + count] for cache in layer.caches()]
        for start, count in zip(starts, counts, strict=True)
    ]


def _uneven(model: Model, tp: int) -> list[str]:
    """Say where KV heads and ranks do not divide one another."""
    heads = {layer.kv_heads for layer in model.layers if layer.kind in ("full", "sliding", "chunked")}
    wrong = sorted(one for one in heads if one and (one % tp if one > tp else tp % one))
    return [f"{wrong[0]} KV heads and {tp} ranks do not divide one another: most models refuse that"] if wrong else []


def _chunked_turns_off(model: Model, version: str) -> bool:
    return versions.holds(version, versions.CHUNKED_OFF_SINCE) and any(
        layer.kind == "chunked" for layer in model.layers
    )


def _v0_groups(stages: list[list[Page]]) -> tuple[Group, ...]:
    """Put all layers into one group: V0 knows no other."""
    everything = [page for pages in stages for page in pages]
    if not everything:
        return ()
    widest = max(everything, key=lambda page: page.bytes)
    return (Group(widest, tuple(count_pages(pages) for pages in stages), mixed=True),)


def _block_bytes(groups: Sequence[Group], version: str, engine: Engine, stage: int) -> int:
    """Return what one block of the pool takes on a stage: as much as the widest group."""
    if engine == "V1" and any(group.mixed for group in groups) and versions.holds(version, versions.WHOLE_PAGES):
        return whole_block_bytes(groups)
    return max((group.block_bytes(stage) for group in groups), default=0)


def whole_block_bytes(groups: Sequence[Group]) -> int:
    """Return what one block would take if one rank held all stages."""
    return max((sum(map(group.block_bytes, range(len(group.stages)))) for group in groups), default=0)


def _per_token(stages: list[list[Page]]) -> Figure:
    """Sum a token's bytes over a stage's attention layers; the fullest stage counts."""
    sums = [sum(page.bytes // page.block_size for page in pages if page.kind != "state") for pages in stages]
    most = max(range(len(sums)), key=lambda stage: sums[stage])
    parts = [
        f"{one.count} {one.page.kind} layers x {one.page.bytes // one.page.block_size:,} bytes"
        for one in count_pages([page for page in stages[most] if page.kind != "state"])
    ]
    where = f", pipeline stage {most} of {len(stages)}" if len(stages) > 1 else ""
    return Figure(sums[most], "bytes", "derived", (" + ".join(parts) or "no layer keeps tokens") + f", one rank{where}")
