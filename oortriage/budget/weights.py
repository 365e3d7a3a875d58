"""Bytes of a model's weights on one rank: from the checkpoint's own headers, else from the model's shape."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oortriage.budget.checkpoint import Checkpoint, Tensor, read_checkpoint
from oortriage.budget.figure import Figure
from oortriage.budget.model import Model
from oortriage.budget.parameters import COUNTED, VOCABULARY_UNIT, Part, count, layer_parts, outer_parts
from oortriage.budget.quantized import Format, element_bytes, weight_format
from oortriage.budget.sums import estimate
from oortriage.errors import UsageError

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block)\.(\d{1,6})\.")
#: Whole on every rank: norms, routers, and what MLA compresses with. vLLM's ReplicatedLinear and RMSNorm.
_WHOLE = re.compile(
    r"norm|\.ln_|(?:^|\.)ln_|\.gate\.(?:weight|bias|e_score)|router|(?:q|kv)_a_proj|shared_expert_gate|rotary|"
    r"\.wpe\.|embed_positions|patch_embed|pos_embed|dt_bias|A_log|conv1d"
)
_KEYS = re.compile(r"\.[kv]_proj\.|\.(?:wk|wv)\.")
#: Row-parallel layers' biases are on every rank.
_ROW_BIAS = re.compile(r"(?:o_proj|out_proj|down_proj|c_proj|dense_4h_to_h|dense)\.bias$")
#: Not loaded: vLLM makes them itself.
_LEFT_OUT = re.compile(r"rotary_emb\.inv_freq$|\.attn\.masked_bias$|\.attn\.bias$")
_FLOATS = ("F32", "F16", "BF16", "F64")
_SCALES = re.compile(r"scale|zero|absmax|quant_map|quant_state|g_idx|e_score_correction_bias")


def weight_bytes(
    model: Model,
    *,
    dtype: str,
    tp: int = 1,
    pp: int = 1,
    quantization: dict[str, Any] | str | None = None,
    source: Path | None = None,
) -> Figure:
    """Return the bytes of the weights on the fullest rank, with the caches of rotary positions vLLM keeps by them.

    Against 11 public figures of "Model loading took" and 19 engine starts on an H200 the error was at most 1 %: torch
    hands out memory for large tensors in steps of 2 MiB, which is not counted here.

    Args:
        model: the model's shape.
        dtype: the type the engine runs in: float16, bfloat16, float32, or auto for the config's.
        tp: tensor-parallel size. Attention and MLPs are divided, norms and routers are not; KV heads no further
            than to one a rank (vLLM 0.22.1 model_executor/layers/linear.py QKVParallelLinear).
        pp: pipeline-parallel size; the layers are divided as vLLM 0.22.1 distributed/utils.py get_pp_indices does.
        quantization: a ``quantization_config`` or the name of a method; None: the model's own.
        source: a local checkpoint: a safetensors or GGUF file, an index, or a folder; only headers are read.

    Raises:
        InputError: the checkpoint cannot be read.
        UsageError: the type is not one of weights, or the parallel sizes do not go with the model.
    """
    if tp < 1 or pp < 1:
        raise UsageError(f"parallel sizes start at 1: tp {tp}, pp {pp}")
    if pp > model.num_layers:
        raise UsageError(f"--pipeline-parallel-size {pp}: the model has {model.num_layers} layers")
    run = model.dtype if dtype == "auto" else dtype
    size = element_bytes(run or "bfloat16")
    if source is not None:
        return _from_checkpoint(model, read_checkpoint(source), size, tp, pp, quantization)
    return _from_config(model, size, tp, pp, quantization if quantization is not None else model.quantization)


def stages(layers: int, pp: int) -> list[range]:
    """Divide layers into pipeline stages; the rest goes to the last stages but one (vLLM get_pp_indices)."""
    sizes = [layers // pp] * pp
    for index in range(2, layers % pp + 2):
        sizes[-index] += 1
    starts = [sum(sizes[:index]) for index in range(pp)]
    return [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def rope_cache_bytes(model: Model, size: int) -> int:
    """Bytes of the sines and cosines a model with rotary positions keeps on every rank, once for each kind of rope.

    max_position_embeddings x rotary width elements of the run type (vLLM 0.22.1 layers/rotary_embedding/base.py).
    """
    rotary = count(model.raw, "qk_rope_head_dim") or model.head_size
    share = model.raw.get("partial_rotary_factor")
    if isinstance(share, float) and 0 < share < 1:
        rotary = int(rotary * share)
    if model.model_type in ("gpt2", "opt", "mpt", "bloom") or not model.heads:
        return 0
    kinds = 2 if model.raw.get("rope_local_base_freq") else 1
    return model.max_position_embeddings * rotary * size * kinds


def _from_config(model: Model, size: int, tp: int, pp: int, quantization: dict[str, Any] | str | None) -> Figure:
    form = weight_format(quantization)
    if form is not None and not form.bytes_per_element:
        raise UsageError(f"how large weights in the format {form.name[:40]!r} are is not known: name the checkpoint")
    most = 0.0
    for stage in stages(model.num_layers, pp):
        outer = outer_parts(model, first=stage.start == 0, last=stage.stop == model.num_layers)
        parts = [*outer, *(part for index in stage for part in layer_parts(model, index))]
        most = max(most, sum(_part_bytes(part, form, size, tp) for part in parts))
    absorbed = _absorbed(model, size, tp, pp, packed=form is not None)
    rope = rope_cache_bytes(model, size)
    how = f"from the model's shape, {form.name if form else f'{size} bytes a parameter'}"
    if tp * pp > 1:
        how += f", the fullest of {tp} x {pp} ranks"
    value = most + absorbed + rope
    exact = model.model_type in COUNTED and not model.multimodal and not absorbed and not model.unknown
    if exact and (form is None or form.exact):
        spread = 0.01 if form else 0.0  # kernels repack: padding, copies of scales
        return (
            Figure(value, "bytes", "derived", how)
            if not spread
            else estimate(value, how, least=value * (1 - spread), most=value * 1.04)
        )
    if model.multimodal:
        how += "; what sees pictures or hears is not in it"
    return estimate(value, how, least=(value - absorbed) * 0.95, most=value * (1.3 if model.multimodal else 1.05))


def _absorbed(model: Model, size: int, tp: int, pp: int, *, packed: bool) -> float:
    """Quantised MLA keeps kv_b_proj a second time, unpacked into two matrices in the run type; else they are views.

    vLLM 0.22.1 model_executor/layers/attention/mla_attention.py, process_weights_after_loading.
    """
    if not model.mla or not packed:
        return 0.0
    raw = model.raw
    each = count(raw, "kv_lora_rank") * model.heads * (count(raw, "qk_nope_head_dim") + count(raw, "v_head_dim"))
    most = max(len(stage) for stage in stages(model.num_layers, pp))
    return each * size * most / tp


def _part_bytes(part: Part, form: Format | None, size: int, tp: int) -> float:
    inputs, outputs, copies = part.inputs, part.outputs, part.copies
    if part.split == "out":
        outputs = math.ceil(outputs / tp)
    elif part.split == "in":
        inputs = math.ceil(inputs / tp)
    elif part.split == "kv":
        outputs = math.ceil(outputs / min(tp, max(part.kv_heads, 1)))
    elif part.split == "vocab":
        rows = part.inputs if part.name.endswith("embed_tokens") else part.outputs
        padded = math.ceil(math.ceil(rows / VOCABULARY_UNIT) * VOCABULARY_UNIT / tp)
        inputs, outputs = (padded, outputs) if part.name.endswith("embed_tokens") else (inputs, padded)
    elements = inputs * outputs * copies
    quantised = part.linear or (form is not None and form.head and part.name == "lm_head")
    if form is None or not quantised or form.keeps(part.name) or (form.experts_only and ".experts." not in part.name):
        return elements * size
    if form.experts_only:
        down = part.name.endswith("down_proj")
        units = (form.inner_unit, form.hidden_unit) if down else (form.hidden_unit, form.inner_unit)
        elements = _up(inputs, units[0]) * _up(outputs, units[1]) * copies
    return elements * form.bytes_per_element + copies * (inputs * form.per_row + outputs * form.per_column)


def _up(number: int, unit: int) -> int:
    return math.ceil(number / unit) * unit


def _from_checkpoint(
    model: Model,
    checkpoint: Checkpoint,
    size: int,
    tp: int,
    pp: int,
    quantization: dict[str, Any] | str | None,
) -> Figure:
    rope = rope_cache_bytes(model, size)
    if not checkpoint.tensors:
        ranks = tp * pp
        value = checkpoint.size / ranks
        how = checkpoint.how + (f" / {ranks} ranks" if ranks > 1 else "")
        most = value * (1.0 if ranks == 1 else 1.15) + rope
        return estimate(value + rope, how, least=value * 0.97, most=most * 1.02)
    quantised = bool(quantization if quantization is not None else model.quantization)
    loaded = [one for one in checkpoint.tensors if _loaded(model, one)]
    most = max(
        sum(_tensor_bytes(one, model, size, tp) for one in _of_stage(loaded, stage, model))
        for stage in stages(model.num_layers, pp)
    )
    absorbed = _absorbed(model, size, tp, pp, packed=quantised)
    value, how = most + rope + absorbed, checkpoint.how
    if tp * pp > 1:
        how += f", the fullest of {tp} x {pp} ranks"
    if isinstance(quantization, str) and not model.quantization:
        return _online(model, value, how, size, tp, pp, quantization)
    if quantised or absorbed:  # kernels repack: padding, copies of scales
        return estimate(value, how, least=(value - absorbed) * 0.98, most=value * 1.04)
    return Figure(value, "bytes", "derived", how)


def _online(model: Model, value: float, how: str, size: int, tp: int, pp: int, method: str) -> Figure:
    """Scale a checkpoint that vLLM itself quantises while it loads it."""
    plain, packed = _from_config(model, size, tp, pp, {}).value, _from_config(model, size, tp, pp, method).value
    scaled = value * packed / plain if plain else value
    return estimate(scaled, f"{how}, quantised to {method} on loading", least=scaled * 0.97, most=scaled * 1.06)


def _loaded(model: Model, tensor: Tensor) -> bool:
    """Tell whether vLLM loads a tensor: no drafter layers beyond the model's own, no head that is tied."""
    if _LEFT_OUT.search(tensor.name):
        return False
    found = _LAYER.search(tensor.name)
    if found and int(found[1]) >= model.num_layers and "vis" not in tensor.name and "audio" not in tensor.name:
        return False
    if tensor.name.startswith("mtp."):
        return False
    return not (model.tie_word_embeddings and tensor.name in ("lm_head.weight", "output.weight"))


def _of_stage(tensors: Iterable[Tensor], stage: range, model: Model) -> Iterable[Tensor]:
    first, last = stage.start == 0, stage.stop == model.num_layers
    for tensor in tensors:
        found = _LAYER.search(tensor.name)
        other = "vis" in tensor.name or "audio" in tensor.name
        if found and not other:
            if int(found[1]) in stage:
                yield tensor
        elif first and last:
            yield tensor
        elif "lm_head" in tensor.name or tensor.name.endswith("norm.weight"):
            if last:
                yield tensor
        elif first or (model.tie_word_embeddings and last and "embed" in tensor.name):
            yield tensor


def _tensor_bytes(tensor: Tensor, model: Model, size: int, tp: int) -> float:
    elements = math.prod(tensor.shape)
    held = float(tensor.size)
    # weights are turned into the run type as they are loaded; scales keep their own
    if tensor.dtype in _FLOATS and not _SCALES.search(tensor.name):
        held = float(elements * size)
    if ("embed_tokens" in tensor.name or tensor.name == "lm_head.weight") and len(tensor.shape) == 2:
        rows = math.ceil(tensor.shape[0] / VOCABULARY_UNIT) * VOCABULARY_UNIT
        held *= rows / max(tensor.shape[0], 1)
    if tp == 1 or _WHOLE.search(tensor.name) or _ROW_BIAS.search(tensor.name) or not tensor.shape:
        return held
    if _KEYS.search(tensor.name) and not count(model.raw, "kv_lora_rank"):
        return held / min(tp, max(model.kv_heads, 1))
    return held / tp
