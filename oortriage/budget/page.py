"""How many bytes a layer's cache takes: a token, a block, a state. One rank, one layer."""

from __future__ import annotations

import msgspec

from oortriage.budget import versions
from oortriage.budget.model import LayerKind, LayerShape, Model, UnknownLayoutError
from oortriage.budget.state import state_elements
from oortriage.errors import UsageError

#: Element sizes in bytes, under every name that ``--dtype`` takes.
DTYPE_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}
#: Types of a KV cache with one byte an element and one scale a tensor.
_FP8 = ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")
#: Bytes of a token in a layer of FlashMLA's sparse fp8 format (vLLM 0.17.1 v1/kv_cache_interface.py).
DS_MLA_BYTES = 656
#: From this compute capability on there is bfloat16.
_BFLOAT16 = 8.0
#: Two scales of four bytes for each head of a token (vLLM 0.20.0 v1/kv_cache_interface.py).
_SCALES = 8
#: DeepSeek's head before MLA: padded for FlashAttention (vLLM 0.6.3.post1 config.py, get_head_size).
_PADDED_HEAD = 256


class Page(msgspec.Struct, frozen=True):
    """The cache of one layer on one rank as the engine sees it: equal pages go into one group.

    ``bytes`` of one block, ``block_size`` and ``window`` in tokens. ``key`` tells layers apart whose pages are as
    large but laid out otherwise.
    """

    kind: LayerKind
    bytes: int
    block_size: int
    window: int = 0
    key: str = ""


def model_dtype(model: Model, dtype: str, version: str, capability: str = "") -> tuple[str, str]:
    """Resolve ``--dtype auto``; the second string is a note, empty where there is nothing to say.

    ``capability`` is the card's, such as ``7.5``; empty where no card was named.

    Raises:
        UsageError: there is no such type, or the release refuses it for this model or card.
    """
    refused = model.model_type in versions.NO_FLOAT16 and versions.holds(version, versions.NO_FLOAT16_SINCE)
    old = bool(capability) and float(capability) < _BFLOAT16
    if dtype != "auto":
        if dtype not in DTYPE_BYTES:
            raise UsageError(f"--dtype {dtype[:40]!r}: there are auto, {', '.join(DTYPE_BYTES)}")
        if dtype == "bfloat16" and old:
            raise UsageError(
                f"--dtype bfloat16: vLLM refuses it below compute capability 8.0, and the card has {capability}"
            )
        if dtype in ("float16", "half") and refused:
            raise UsageError(f"--dtype {dtype}: vLLM refuses it for {model.model_type}; bfloat16 or float32")
        return dtype, ""
    if old and model.dtype == "bfloat16":
        instead = "float32" if refused else "float16"
        return instead, f"a card of compute capability {capability} has no bfloat16: auto falls back to {instead}"
    if model.dtype == "bfloat16" or (model.dtype in ("float16", "half") and not refused):
        return model.dtype, ""
    if refused and not old:
        return "bfloat16", f"vLLM does not run {model.model_type} in float16: auto takes bfloat16"
    if refused:
        return "float32", f"vLLM does not run {model.model_type} in float16: auto takes float32"
    said = f"the config says {model.dtype}" if model.dtype else "the config states no type"
    return "float16", f"{said}: auto takes a type of 2 bytes an element"


def cache_dtype(model: Model, version: str, kv_dtype: str) -> tuple[str, str]:
    """Resolve ``--kv-cache-dtype``; the second string is a note.

    Raises:
        UsageError: the release does not take the type, or this tool cannot work it out.
    """
    known = versions.kv_dtypes(version)
    if kv_dtype not in known:
        since = [one.since for one in versions.KV_DTYPES if one.value == kv_dtype]
        raise UsageError(
            f"--kv-cache-dtype {kv_dtype[:40]!r}: "
            + (f"there from vLLM {since[0]} on" if since else f"vLLM {version} takes {', '.join(known)}")
        )
    if kv_dtype.startswith(("turboquant", "octave", "ultraquant", "nvfp4_")):
        raise UnknownLayoutError(f"--kv-cache-dtype {kv_dtype}: its packing is not modelled")
    if kv_dtype == "auto":
        followed = _declared(model)
        if followed and versions.release(versions.rules_from(version)) >= versions.release(followed):
            return "fp8", "the checkpoint declares an FP8 KV cache, and auto follows it"
        if followed:
            return "auto", f"the checkpoint declares an FP8 KV cache; auto follows it from vLLM {followed} on"
    if kv_dtype in _FP8 and model.raw.get("index_topk") and versions.holds(version, versions.INDEXER_SINCE):
        return "fp8_ds_mla", "sparse MLA takes fp8 as fp8_ds_mla"
    return kv_dtype, ""


def _declared(model: Model) -> str:
    """Return the release from which a checkpoint's own FP8 cache is followed; empty where it declares none.

    ModelOpt: vLLM 0.17.1 utils/torch_utils.py; compressed-tensors: 0.16.0 model_executor/layers/attention/attention.py.
    """
    quantization = model.quantization
    method = str(quantization.get("quant_method", "")).replace("_", "-")
    if method == "compressed-tensors":
        return "0.16.0" if quantization.get("kv_cache_scheme") else ""
    inner = quantization.get("quantization")
    inner = inner if isinstance(inner, dict) else quantization
    scheme = inner.get("kv_cache_scheme") or quantization.get("kv_cache_scheme")
    said = inner.get("kv_cache_quant_algo") or quantization.get("kv_cache_quant_algo")
    if isinstance(scheme, dict):
        eight_bits = scheme.get("num_bits") == 8 and scheme.get("type") == "float"
        said = "fp8" if eight_bits else said
    return "0.11.2" if method.startswith("modelopt") and str(said).lower() == "fp8" else ""


def token_bytes(layer: LayerShape, *, tp: int, dtype: str, kv_dtype: str) -> int:
    """Return the bytes of one token in one attention layer on one rank.

    Keys and values of ``max(1, kv_heads // tp)`` heads; MLA's one vector is not divided (vLLM 0.17.1
    v1/kv_cache_interface.py). Scales of the per-head types as in 0.20.0 and 0.25.1.
    """
    element = 1 if kv_dtype in _FP8 else DTYPE_BYTES[dtype if kv_dtype in ("auto", "fp8_ds_mla") else _plain(kv_dtype)]
    if layer.kind == "mla":
        if layer.element_bytes:
            return layer.head_size * layer.element_bytes
        if kv_dtype == "fp8_ds_mla":
            return DS_MLA_BYTES
        if kv_dtype.endswith("per_token_head") or kv_dtype == "nvfp4":
            raise UsageError(f"--kv-cache-dtype {kv_dtype}: not for a model with MLA")
        return layer.head_size * element
    if kv_dtype == "fp8_ds_mla":
        raise UsageError("--kv-cache-dtype fp8_ds_mla is for models with MLA")
    heads = max(1, layer.kv_heads // tp)
    widths = (layer.head_size, layer.v_head_size or layer.head_size)
    if kv_dtype == "int4_per_token_head":
        return heads * (sum(width // 2 for width in widths) + _SCALES)
    if kv_dtype.endswith("per_token_head"):
        return heads * (sum(widths) + _SCALES)
    if kv_dtype == "nvfp4":  # 4 bits an element, and an fp8 scale for every 16
        return heads * sum(width // 2 + width // 16 for width in widths)
    return heads * sum(widths) * element


def _plain(kv_dtype: str) -> str:
    return kv_dtype if kv_dtype in DTYPE_BYTES else "float16"


def padded_mla(layer: LayerShape, model: Model, tp: int, dtype: str, kv_dtype: str) -> int:
    """Return a token's bytes before MLA was kept compressed: whole keys and values, heads padded to 256."""
    heads = max(1, model.kv_heads // tp)
    whole = LayerShape("full", heads * tp, _PADDED_HEAD, _PADDED_HEAD)
    return token_bytes(whole, tp=tp, dtype=dtype, kv_dtype=kv_dtype) if not layer.element_bytes else 0


def state_bytes(layer: LayerShape, *, tp: int, dtype: str) -> int:
    """Return the bytes of one request's state in one layer on one rank.

    Raises:
        UnknownLayoutError: the config does not tell how large it is.
    """
    if layer.state is None:
        raise UnknownLayoutError("the config does not tell how large the state of a layer without attention is")
    convolution, recurrent = state_elements(layer.state, tp)
    return convolution * DTYPE_BYTES[dtype] + recurrent * DTYPE_BYTES[layer.state.recurrent_dtype or dtype]
