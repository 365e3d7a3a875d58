"""What a model's ``config.json`` says of its size: layers by kind, heads, widths, experts, vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from oortriage.budget.defaults import with_defaults
from oortriage.budget.layers import Kinds, read_kinds
from oortriage.budget.state import State, read_state
from oortriage.errors import InputError, OortriageError
from oortriage.kernels.model_config import architecture_name, dtype_name, optional_count, stated_count, text_part

#: How a layer keeps the past. ``full``, ``sliding`` and ``chunked`` have keys and values a head; ``mla`` keeps one
#: compressed vector a token; ``state`` keeps a state of fixed size a request (Mamba, linear attention, short
#: convolutions); ``shared`` reads another layer's cache and ``none`` has none.
LayerKind = Literal["full", "sliding", "chunked", "mla", "state", "shared", "none"]

#: Models whose compressed attention vLLM keeps compressed, where kv_lora_rank is stated
#: (vLLM 0.17.1 and 0.33.0 transformers_utils/model_arch_config_convertor.py, is_deepseek_mla).
MLA_MODELS = frozenset((
    "axk1", "deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_mtp", "dots3_note", "glm_moe_dsa", "glm4_moe_lite",
    "glm4_moe_lite_mtp", "kimi_k2", "kimi_linear", "longcat_flash", "pangu_ultra_moe", "pangu_ultra_moe_mtp",
    "bailing_hybrid", "hy_v4",
))  # fmt: skip
#: Elements that share a scale in the sparse indexer's cache (vLLM 0.17.1 model_executor/models/deepseek_v2.py).
_INDEXER_BLOCK = 128
#: No model has more layers; a config that says so is nonsense, and would take memory for nothing.
_MOST_LAYERS = 4096


class UnknownLayoutError(OortriageError):
    """The config does not tell how the model's cache is laid out: the question stays open."""

    exit_code = 3


class LayerShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """The cache of one layer, before tensor parallelism. Sizes in elements, ``window`` in tokens.

    ``window`` is the sliding window or the chunk; 0 for the other kinds. ``head_size`` of ``mla`` is
    kv_lora_rank + qk_rope_head_dim, with one head and no value. ``element_bytes`` is 0 where the cache's type decides.
    ``more`` are further caches of the same layer: a state beside attention, a sparse indexer beside MLA.
    """

    kind: LayerKind
    kv_heads: int = 0
    head_size: int = 0
    v_head_size: int = 0
    window: int = 0
    element_bytes: int = 0
    state: State | None = None
    more: tuple[LayerShape, ...] = ()

    def caches(self) -> Iterator[LayerShape]:
        """Yield the caches that the layer has of its own."""
        if self.kind not in ("shared", "none"):
            yield self
        yield from self.more


class Model(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model, as far as its config tells. Counts; ``head_size`` and the other widths in elements.

    ``layers`` has one entry a decoder layer, in the order of the model, so that it can be cut for pipeline
    parallelism. ``raw`` is the language model's part of the config. ``notes`` say what was assumed; ``unknown`` why
    the cache's layout cannot be told, where it cannot.
    """

    architecture: str
    model_type: str
    #: As the config states it (``bfloat16``); empty when it does not.
    dtype: str
    layers: tuple[LayerShape, ...]
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_size: int
    vocab_size: int
    #: Tokens; 0 when the config does not say.
    max_position_embeddings: int
    tie_word_embeddings: bool
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    #: The inner width of one expert.
    expert_size: int = 0
    #: The number of first layers that have a dense MLP although the model has experts.
    dense_layers: int = 0
    quantization: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    multimodal: bool = False
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def num_layers(self) -> int:
        """All decoder layers."""
        return len(self.layers)

    @property
    def mla(self) -> bool:
        """Whether vLLM keeps its keys and values as one compressed vector a token."""
        return any(layer.kind == "mla" for layer in self.layers)


def read_model(config: Mapping[str, Any], name: str = "config.json") -> Model:
    """Take a Hugging Face config apart; ``name`` stands in error messages.

    Raises:
        InputError: it does not say how many layers or heads the model has, or says it in nonsense.
    """
    whole = dict(config)
    stated = text_part(whole)
    model_type = _string(stated, "model_type") or _string(whole, "model_type")
    text, filled = with_defaults(stated, model_type)
    depth = stated_count(text, name, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    if not 0 < depth <= _MOST_LAYERS:
        raise InputError(
            f"{name}: it says the model has {depth:,} layers" if depth else f"{name}: no num_hidden_layers in it"
        )
    heads = stated_count(text, name, "num_attention_heads", "n_head", "num_heads", "n_heads")
    hidden = stated_count(text, name, "hidden_size", "n_embd", "d_model")
    kinds = read_kinds(text, model_type, depth, name)
    attends = any(kind not in ("state", "none") for kind in kinds.order)
    if attends and not heads:
        raise InputError(f"{name}: no num_attention_heads in it: which cache it has cannot be told")
    notes, unknown = [*filled, *kinds.notes], _unknown(text, model_type)
    head = _head_size(text, name, heads, hidden, notes) if heads else 0
    kv_heads = _kv_heads(text, model_type, heads, name)
    state = read_state(text, model_type) if any(kind in ("state", "both") for kind in kinds.order) else None
    if state is None and any(kind in ("state", "both") for kind in kinds.order):
        unknown.append("the config does not tell how large the state of a layer without attention is")
    layers = tuple(
        _layer(kind, index, text, model_type, kinds, heads=heads, kv_heads=kv_heads, head=head, state=state)
        for index, kind in enumerate(kinds.order)
    )
    return Model(
        architecture=architecture_name(whole, text),
        model_type=model_type,
        dtype=dtype_name(text) or dtype_name(whole),
        layers=layers,
        hidden_size=hidden,
        intermediate_size=optional_count(text, "intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim"),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head,
        vocab_size=optional_count(text, "vocab_size") or optional_count(whole, "vocab_size"),
        max_position_embeddings=optional_count(
            text, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length"
        ),
        tie_word_embeddings=_tied(whole, text, model_type),
        experts=optional_count(text, "num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts"),
        experts_per_token=optional_count(text, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k"),
        shared_experts=optional_count(text, "n_shared_experts", "num_shared_experts"),
        expert_size=optional_count(text, "moe_intermediate_size", "expert_ffn_hidden_size"),
        dense_layers=optional_count(text, "first_k_dense_replace"),
        quantization=_quantization(whole, text),
        raw=text,
        multimodal=stated is not whole,
        notes=tuple(notes),
        unknown=tuple(unknown),
    )


def _layer(
    kind: str,
    index: int,
    text: dict[str, Any],
    model_type: str,
    kinds: Kinds,
    *,
    heads: int,
    kv_heads: int,
    head: int,
    state: State | None,
) -> LayerShape:
    """Shape one layer's caches."""
    if kind == "state":
        return LayerShape("state", state=state)
    if kind in ("shared", "none"):
        return LayerShape("shared" if kind == "shared" else "none")
    more = (LayerShape("state", state=state),) if kind == "both" else ()
    latent = optional_count(text, "kv_lora_rank")
    if latent and model_type.lower() in MLA_MODELS:
        rotary = optional_count(text, "qk_rope_head_dim")
        return LayerShape("mla", 1, latent + rotary, more=(*more, *_indexer(text)))
    if latent and (rotary := optional_count(text, "qk_rope_head_dim")):
        # compressed in the weights only: the cache holds whole keys, one a query head
        return LayerShape("full", heads, optional_count(text, "qk_nope_head_dim") + rotary, more=more)
    few = _block_heads(text, index, heads) or _listed(text, "num_key_value_heads", index) or kv_heads
    if kind in ("full", "both"):
        wide = optional_count(text, "global_head_dim") or head
        few = optional_count(text, "num_global_key_value_heads") or few
        return LayerShape("full", few, wide, wide, more=more)
    window = kinds.window if kind == "sliding" else kinds.chunk
    return LayerShape("sliding" if kind == "sliding" else "chunked", few, head, head, window, more=more)


def _indexer(text: dict[str, Any]) -> tuple[LayerShape, ...]:
    """Shape the cache of a sparse indexer (DeepSeek V3.2): one byte an element, and a scale a block of 128."""
    size = optional_count(text, "index_head_dim")
    if not size or not optional_count(text, "index_topk"):
        return ()
    return (LayerShape("mla", 1, size + size // _INDEXER_BLOCK * 4, element_bytes=1),)


def _unknown(text: dict[str, Any], model_type: str) -> list[str]:
    """Say why a model's layout is not told by what is read here."""
    if text.get("compress_ratios") or model_type.startswith("deepseek_v4"):
        return ["layers that keep several tokens in one entry (compress_ratios) are not modelled"]
    if text.get("is_encoder_decoder"):
        return ["encoder-decoder models keep a second cache for the encoder, which is not modelled"]
    if text.get("hybrid_layer_pattern"):
        return ["hybrid_layer_pattern with widths of its own for each kind of layer is not modelled"]
    return []


def _kv_heads(text: dict[str, Any], model_type: str, heads: int, name: str) -> int:
    """Return the KV heads, by vLLM's order of sources (0.6.3.post1 config.py, get_total_num_kv_heads)."""
    if model_type in ("falcon", "RefinedWeb", "RefinedWebModel") and not text.get("new_decoder_architecture"):
        return 1 if text.get("multi_query", True) else heads
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):
        return 1
    inner = text.get("attn_config")
    if model_type in ("mpt", "dbrx") and isinstance(inner, dict):
        return optional_count(inner, "kv_n_heads") or heads
    usable = {key: value for key, value in text.items() if not isinstance(value, list)}
    return stated_count(usable, name, "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num") or (
        _listed(text, "num_key_value_heads", 0) or heads
    )


def _head_size(text: dict[str, Any], name: str, heads: int, hidden: int, notes: list[str]) -> int:
    """Return the head size: stated, else the hidden size over the heads."""
    stated = stated_count(text, name, "head_dim", "hidden_size_per_head", "attention_head_dim")
    if stated or optional_count(text, "kv_lora_rank"):
        return stated
    if hidden < heads:
        raise InputError(f"{name}: neither head_dim nor a hidden_size of at least one element a head in it")
    notes.append(f"head size {hidden // heads} = hidden_size / num_attention_heads")
    return hidden // heads


def _listed(text: dict[str, Any], key: str, index: int) -> int:
    """Return a layer's own figure where a config lists one a layer."""
    listed = text.get(key)
    if isinstance(listed, list) and index < len(listed):
        return optional_count({key: listed[index]}, key)
    return 0


def _block_heads(text: dict[str, Any], index: int, heads: int) -> int:
    """Return a pruned layer's KV heads (``block_configs``, vLLM 0.17.1 model_executor/models/nemotron_nas.py)."""
    blocks = text.get("block_configs")
    block = blocks[index] if isinstance(blocks, list) and index < len(blocks) else None
    attention = block.get("attention") if isinstance(block, dict) else None
    shared = optional_count(attention, "n_heads_in_group") if isinstance(attention, dict) else 0
    return heads // shared if shared else 0


def _tied(whole: dict[str, Any], text: dict[str, Any], model_type: str) -> bool:
    for config in (text, whole):
        if isinstance(config.get("tie_word_embeddings"), bool):
            return bool(config["tie_word_embeddings"])
    # transformers' default is True; the commonest models state or override it
    return model_type.startswith(("gemma", "gpt2", "bloom", "falcon", "cohere"))


def _quantization(whole: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    for config in (whole, text):
        for key in ("quantization_config", "compression_config"):
            if isinstance(config.get(key), dict):
                return dict(config[key])
    return {}


def _string(config: dict[str, Any], key: str) -> str:
    said = config.get(key)
    return said if isinstance(said, str) else ""
