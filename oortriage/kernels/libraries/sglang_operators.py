"""SGLang's compiled operators in the child process: there is no GPU, so they answer shapes and compute nothing.

The expert layer calls them between its Triton kernels: to quantise activations, to sort tokens by
expert, to apply an activation function. Most fill tensors they are given (a silent stand-in does);
only what returns new tensors is here.
"""

from __future__ import annotations

import contextlib
from types import ModuleType, SimpleNamespace
from typing import Any

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.stand_in import Face


def operator_faces(card: Card) -> dict[str, Face]:
    """Return the faces of the modules that hold such operators.

    Args:
        card: decides which 8-bit float it is.
    """
    import torch

    older_amd = str(card.target.arch) in ("gfx90a", "gfx940", "gfx941", "gfx942")
    fp8 = torch.float8_e4m3fnuz if older_amd else torch.float8_e4m3fn

    def per_tensor(data: Any, scale: Any = None, *_: Any, use_per_token_if_dynamic: bool = False, **__: Any) -> Any:
        rows = data.shape[0] if use_per_token_if_dynamic else 1
        if scale is None:
            scale = data.new_empty((rows, 1) if use_per_token_if_dynamic else (1,), dtype=torch.float32)
        return torch.empty_like(data, dtype=fp8), scale

    def per_group(kind: Any) -> Any:
        def quantise(data: Any, group_size: int, *_: Any, **__: Any) -> Any:
            scale = data.new_empty((*data.shape[:-1], -(-data.shape[-1] // group_size)), dtype=torch.float32)
            return torch.empty_like(data, dtype=kind), scale

        return quantise

    def per_token_int8(data: Any, *_: Any, **__: Any) -> Any:
        return torch.empty_like(data, dtype=torch.int8), data.new_empty((*data.shape[:-1], 1), dtype=torch.float32)

    def quantisation(module: ModuleType) -> None:
        module.__dict__.update(
            scaled_fp8_quant=per_tensor,
            per_token_group_quant_fp8=per_group(fp8),
            sglang_per_token_group_quant_fp8=per_group(fp8),
            per_token_group_quant=per_group(fp8),
            per_token_group_quant_int8=per_group(torch.int8),
            sglang_per_token_group_quant_int8=per_group(torch.int8),
            per_token_quant_int8=per_token_int8,
        )

    def experts(module: ModuleType) -> None:
        # Defaults of a server started with no options: no padding of the weights, Triton's own kernels.
        module.__dict__.update(get_moe_padding_size=lambda _aiter=False: 0, get_config=lambda: None)

    def no_context(module: ModuleType) -> None:
        module.__dict__.update(
            use_symmetric_memory=lambda *_a, **_k: contextlib.nullcontext(),
            is_allocation_symmetric=lambda: False,
            is_batch_invariant_mode_enabled=lambda: False,
            is_arch_support_pdl=lambda *_a, **_k: card.target.backend == "cuda" and card.capability >= (9, 0),
        )

    def runtime(module: ModuleType) -> None:
        execution = SimpleNamespace(
            deterministic=SimpleNamespace(enable_deterministic_inference=False),
            moe=SimpleNamespace(enable_fused_moe_sum_all_reduce=False),
        )
        alone = SimpleNamespace(tp_size=1, tp_group=None)
        module.__dict__.update(get_exec=lambda: execution, get_parallel=lambda: alone)

    old, new = "sglang.srt.layers.quantization", "sglang.kernels.ops.quantization"
    return {
        **{f"{place}.{name}_kernel": quantisation for place in (old, new) for name in ("fp8", "int8")},
        f"{new}.per_token_group_quant": quantisation,
        "sglang.srt.layers.moe.utils": experts,
        "sglang.srt.layers.fused_moe_triton": experts,
        "sglang.srt.layers.moe.fused_moe_triton": experts,
        "sglang.srt.layers.moe.moe_runner.triton_utils": experts,
        "sglang.srt.distributed.device_communicators.pynccl_allocator": no_context,
        "sglang.srt.layers.dp_attention": no_context,
        "sglang.srt.batch_invariant_ops": no_context,
        "sglang.kernels.jit.utils": no_context,
        "sglang.srt.runtime_context": runtime,
        "vllm._custom_ops": quantisation,
    }
