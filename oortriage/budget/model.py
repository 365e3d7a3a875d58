"""What a model's ``config.json`` says of its size: layers by kind, heads, widths, experts, vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

#: How a layer keeps the past. ``full``, ``sliding`` and ``chunked`` have keys and values a head; ``mla`` keeps one
#: compressed vector a token; ``state`` keeps a state of fixed size a request (Mamba, linear attention, short
#: convolutions); ``shared`` reads another layer's cache and ``none`` has none.
LayerKind = Literal["full", "sliding", "chunked", "mla", "state", "shared", "none"]


class StateShape(msgspec.Struct, frozen=True):
    """One state of a layer without a KV cache: elements on one rank for TP 1, and how they are cut."""

    shape: tuple[int, ...]
    #: ``model`` or a type's name.
    dtype: str = "model"
    #: The axis that tensor parallelism divides, -1 for none.
    tp_axis: int = -1


class LayerShape(msgspec.Struct, frozen=True):
    """The cache of one layer, before tensor parallelism. Sizes in elements, ``window`` in tokens.

    ``window`` is the sliding window or the chunk; 0 for the other kinds. ``head_size`` of ``mla`` is
    kv_lora_rank + qk_rope_head_dim, with one head and no value.
    """

    kind: LayerKind
    kv_heads: int = 0
    head_size: int = 0
    v_head_size: int = 0
    window: int = 0
    states: tuple[StateShape, ...] = ()


class Model(msgspec.Struct, frozen=True):
    """A model, as far as its config tells. Counts; ``head_size`` and the other widths in elements.

    ``layers`` has one entry a layer, in the order of the model, so that it can be cut for pipeline parallelism.
    ``raw`` is the language model's part of the config. ``notes`` say what was assumed and what cannot be told.
    """

    architecture: str
    model_type: str
    dtype: str
    layers: tuple[LayerShape, ...]
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_size: int
    vocab_size: int
    max_position_embeddings: int
    tie_word_embeddings: bool
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    expert_size: int = 0
    #: The number of first layers that have a dense MLP although the model has experts.
    dense_layers: int = 0
    quantization: dict[str, Any] = {}
    raw: dict[str, Any] = {}
    multimodal: bool = False
    notes: tuple[str, ...] = ()

    @property
    def num_layers(self) -> int:
        """All decoder layers."""
        return len(self.layers)


def read_model(config: Mapping[str, Any], name: str = "config.json") -> Model:
    """Take a Hugging Face config apart; ``name`` stands in error messages.

    Raises:
        InputError: it does not say how many layers or heads the model has, or says it in nonsense.
    """
    raise NotImplementedError
