"""What the profile run of start-up holds at its peak beside the weights: an estimate with its range.

The profile run sends max_num_batched_tokens tokens through the model, then samples from max_num_seqs rows of logits.
Two moments can be the peak: inside a layer's MLP, or in the sampler. The run itself computes no attention in V1.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.kv import Engine
from oortriage.budget.model import Model
from oortriage.budget.parameters import UNGATED, count, has_experts
from oortriage.budget.quantized import element_bytes
from oortriage.budget.sums import estimate
from oortriage.budget.versions import Fact, default_engine, holds
from oortriage.errors import UsageError

#: How the dummy sampler cuts to top-k and top-p: by sorting all logits, by a Triton kernel, with FlashInfer, or not at
#: all (``uncut``: the V2 model runner, whose own comment says that it profiles less than what can happen).
Sampler = Literal["sorted", "triton", "flashinfer", "uncut"]

#: Bytes a logit at the peak of a sampler that sorts: value, least, most. It holds logits in the run type and float32,
#: sorted values and indices, sort's own space, the mask, probabilities and running sums. 256 rows of 151,936 logits
#: take 1.40 GiB (Qwen3-8B, vLLM 0.15), 1.42 GiB (Qwen2.5-7B AWQ, 0.7, vllm issue 13882); 256 rows of 128,256 take
#: 1.19 and 1.26 GiB (Llama-3-8B, 0.6.6, vllm pull request 10511).
SORTED_BYTES = (38.0, 34.0, 45.0)
#: The same where a Triton kernel cuts: three float32 matrices (logits, probabilities, random numbers), and logits in
#: the run type where that is another. Exact to 3 MiB on six starts of vLLM 0.22.1 (docs/evidence/kv-starts.md).
TRITON_MATRICES = 3
#: The kernel's work space: a row of float32 logits for each of the card's multiprocessors, as far as there are rows.
TRITON_PROGRAMS = 132
#: FlashInfer by itself holds less, but releases that have it warm up the Triton path as well (vLLM 0.22.1
#: v1/worker/gpu_model_runner.py _dummy_sampler_run): bytes a logit at the least.
FLASHINFER_LEAST = 6.0
#: Releases from 0.22.1 on may take the V2 model runner, by the model: 0.25 GiB at 256 x 151,936 (Qwen2.5-0.5B, 0.27)
#: is what logits in two types take, but 1.06 GiB for the same model (0.26) and 1.44 GiB at 256 x 128,256
#: (Llama-3.1-8B on an A100, 0.31) are not explained here: the range reaches this far above.
UNEXPLAINED = 5 << 28
#: cuBLAS' work space, which torch allocates at the first product: 32 MiB on cards of 9.0 (measured on an H200), and
#: 8,320 KiB on older ones (torch's CUBLAS_WORKSPACE_CONFIG default).
CUBLAS_BYTES, CUBLAS_BYTES_BEFORE_9 = 32 << 20, 8320 << 10
TRITON_SINCE = Fact("triton", "0.18.0", "", "vLLM 0.18.0 v1/sample/ops/topk_topp_sampler.py")
FLASHINFER_SINCE = Fact("flashinfer", "0.22.1", "", "vLLM 0.22.1 envs.py, v1/sample/ops/topk_topp_sampler.py")
UNCUT_SINCE = Fact("V2 model runner", "0.28.0", "", "vLLM 0.30.0 v1/worker/gpu/model_runner.py _dummy_sampler_run")
#: FlashInfer's sampler where it is installed, before it was turned off by default (V1).
FLASHINFER_IF_THERE = Fact("flashinfer if installed", "0.9.2", "0.11.0", "vLLM 0.10.2 topk_topp_sampler.py")
#: Rows below which the Triton kernel is not used.
TRITON_ROWS = 8
#: Hidden states that live beside the MLP's matrices: input, residual, and what is not freed yet. 2.02 GiB for
#: Qwen2.5-1.5B with 32,768 tokens in float16 (vLLM 0.7, a T4) is 3 x MLP + 4 x hidden. Llama and Qwen2 shapes have 3
#: in plain PyTorch, Gemma-3 and DeepSeek-V2 4 (vLLM 0.22.1, an H200, from 2,048 to 16,384 tokens, to the MiB).
_HIDDEN, _HIDDEN_NATIVE = 4, 3
_FOUR_HIDDEN = ("gemma", "deepseek")
#: Tokens that the fused experts' kernel takes at once (VLLM_FUSED_MOE_CHUNK_SIZE).
_CHUNK = 32768


class Peak(msgspec.Struct, frozen=True):
    """The two moments, bytes: the fullest layer with what is alive around it, and the sampler."""

    layer: Figure
    sampler: Figure

    @property
    def figure(self) -> Figure:
        """The larger of the two, with the range of both."""
        first, second = sorted((self.layer, self.sampler), key=lambda one: one.value, reverse=True)
        return estimate(
            first.value,
            first.how,
            least=max(first.low or 0.0, second.low or 0.0),
            most=max(first.high or 0.0, second.high or 0.0),
        )


def activation_peak(
    model: Model,
    *,
    version: str,
    dtype: str,
    max_num_batched_tokens: int,
    max_num_seqs: int,
    tp: int = 1,
    eager: bool = False,
    engine: Engine | None = None,
    sampler: Sampler | None = None,
    native: bool = False,
    capability: str = "",
) -> Peak:
    """Estimate torch's peak during the profile run above the weights, bytes on the fullest rank, at its two moments.

    Of pipeline stages the last one samples, and is the fullest.

    Where the sampler sorts, five public figures are met to 7 %, and 16 starts on an H200 where it does not, to 0.2 %.
    Four more, whose settings are not all known, lie in the range only.

    Args:
        model: the model's shape.
        version: vLLM's release.
        dtype: the run type; auto for the config's.
        max_num_batched_tokens: tokens of the run.
        max_num_seqs: rows of logits.
        tp: tensor-parallel size; it divides the MLP, not hidden states and logits.
        eager: ``--enforce-eager``; what torch.compile fuses is then alive.
        engine: V0 or V1; None: the release's default.
        sampler: how top-k and top-p are cut; None: the release's default, FlashInfer where it needs it.
        capability: the card's compute capability, such as ``8.9``; empty: not known.
        native: operators in plain PyTorch instead of vLLM's own (``custom_ops: ["none"]`` without compiling).

    Raises:
        UsageError: a size below one, or no type of weights.
    """
    if min(max_num_batched_tokens, max_num_seqs, tp) < 1:
        raise UsageError("tokens, sequences and ranks of a step start at 1")
    size = element_bytes((model.dtype if dtype == "auto" else dtype) or "bfloat16")
    tokens, rows = max_num_batched_tokens, min(max_num_seqs, max_num_batched_tokens)
    chosen = engine or default_engine(version)
    older = capability[:2] in ("6.", "7.", "8.")
    workspace = CUBLAS_BYTES_BEFORE_9 if older else CUBLAS_BYTES
    wide = _widest(model, tokens, size, tp, native=native) + workspace
    layer = estimate(
        wide,
        f"the widest layer, {tokens:,} tokens",
        least=wide * (0.95 if native else 0.9 if eager else 0.6),
        most=wide * (1.05 if native else 1.3 if eager else 1.6),
    )
    way = sampler or _sampler(version, "V0" if chosen == "V0" else "V1", rows)
    # hidden states are still there, and the rows that are sampled twice: picked, and made random
    held = (tokens + 2 * rows) * model.hidden_size * size + workspace
    value, least, most = _sampling(model, rows, size, way)
    if sampler is None and chosen != "V0" and holds(version, FLASHINFER_IF_THERE):
        least = min(least, 12.0 * rows * model.vocab_size)
    if sampler is None and chosen != "V0" and holds(version, FLASHINFER_SINCE):
        most += UNEXPLAINED
    told = f"the sampler, {rows:,} rows of {model.vocab_size:,} logits ({way})"
    return Peak(layer, estimate(value + held, told, least=least + held / 2, most=most + held))


def _sampling(model: Model, rows: int, size: int, way: Sampler) -> tuple[float, float, float]:
    """Bytes that sampling takes by itself: value, least and most."""
    logits = rows * model.vocab_size
    if way == "sorted":
        each, least, most = SORTED_BYTES
        return logits * each, logits * least, logits * most
    copied = size if size < 4 else 0
    if way == "uncut":
        value = logits * (4.0 + copied)
        return value, value * 0.95, value
    space = min(rows, TRITON_PROGRAMS) * model.vocab_size * 4
    value = logits * (4.0 * TRITON_MATRICES + copied) + space
    return value, (value * 0.95 if way == "triton" else logits * FLASHINFER_LEAST), value * 1.05


def _sampler(version: str, engine: Engine, rows: int) -> Sampler:
    if engine == "V0":
        return "sorted"
    if holds(version, UNCUT_SINCE):
        return "uncut"
    if holds(version, FLASHINFER_SINCE):
        return "flashinfer"
    return "triton" if holds(version, TRITON_SINCE) and rows >= TRITON_ROWS else "sorted"


def _widest(model: Model, tokens: int, size: int, tp: int, *, native: bool) -> float:
    """Bytes alive at the widest point of the widest layer."""
    hidden = tokens * model.hidden_size * size
    inside = [_attention(model, tokens, size, tp)]
    experts = [has_experts(model, index) for index in range(model.num_layers)]
    if any(experts):
        inside.append(_experts(model, tokens, size, tp))
    if not all(experts) or not experts:
        width = count(model.raw, "intermediate_size_mlp") or model.intermediate_size or 4 * model.hidden_size
        # gate and up in one matrix, then their product; without gates what goes in and what comes out
        matrices = 2 if model.model_type in UNGATED else 4 if native else 3
        inside.append(tokens * width / tp * size * matrices)
    states = _HIDDEN_NATIVE if native and not model.model_type.startswith(_FOUR_HIDDEN) else _HIDDEN
    return max(inside) + states * hidden


def _attention(model: Model, tokens: int, size: int, tp: int) -> float:
    """Query, key and value in one matrix, and the output beside it."""
    query = model.heads * model.head_size
    keys = model.kv_heads * model.head_size
    return tokens * size * (2 * query + 2 * keys) / tp


def _experts(model: Model, tokens: int, size: int, tp: int) -> float:
    """The fused experts' two work spaces for each token's experts, in chunks, and the router's float32 logits."""
    width = (model.expert_size or model.intermediate_size) / tp
    each = max(1, model.experts_per_token) * min(tokens, _CHUNK)
    shared = model.shared_experts * width * 3 * tokens * size
    return each * size * (max(2 * width, model.hidden_size) + width) + tokens * model.experts * 4 + shared
