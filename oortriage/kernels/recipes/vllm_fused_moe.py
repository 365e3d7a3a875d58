"""vLLM's Triton fused mixture of experts (0.7 to 0.33): both matrix products of an expert layer."""

from __future__ import annotations

from typing import Any

from oortriage.errors import UsageError
from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with
from oortriage.kernels.libraries.vllm_tuned import fetch_tuned

_FOLDER = "vllm.model_executor.layers.fused_moe"
_QUANTISED = ("none", "fp8", "fp8_per_channel", "fp8_block", "int8", "int8_w8a16", "int4_w4a16")


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(f"{_FOLDER}.fused_moe")
    experts, intermediate = shape["experts"], shape["intermediate"]
    # The wrapper looks for a tuned configuration beside itself; the file must be there for it.
    fetch_tuned(library, f"{_FOLDER.replace('.', '/')}/configs", f"E={experts},N={intermediate},")
    dtype = getattr(torch, shape["dtype"])
    tokens, top_k = shape["tokens"], shape["top_k"]
    # "meta" tensors have a shape, a type and strides but no memory, so that any model's size will do.
    with torch.device("meta"):
        given: dict[str, Any] = {
            "hidden_states": torch.empty(tokens, shape["hidden"], dtype=dtype),
            "topk_weights": torch.empty(tokens, top_k, dtype=torch.float32),
            "inplace": False,
            "topk_ids": torch.empty(tokens, top_k, dtype=torch.int32),
            **_weights(library, shape, dtype),
        }
        # The signature grew over the releases; each gets what it has a parameter for.
        call_with(module.fused_experts_impl, given)


def _weights(library: Library, shape: Shape, dtype: Any) -> dict[str, Any]:
    """Make the weights of both products as the loader of each quantisation lays them out."""
    import torch

    experts, hidden, intermediate = shape["experts"], shape["hidden"], shape["intermediate"]
    how = shape["quantisation"]
    sizes = {"w1": (experts, 2 * intermediate, hidden), "w2": (experts, hidden, intermediate)}
    group_n, group_k = shape["group_n"], shape["group_k"]
    given: dict[str, Any] = {}
    for name, (count, rows, columns) in sizes.items():
        scale: Any = None
        if how == "none":
            weight = torch.empty(count, rows, columns, dtype=dtype)
        elif how.startswith("fp8"):
            platform = library.module("vllm.platforms").current_platform
            weight = torch.empty(count, rows, columns, dtype=platform.fp8_dtype())
            if how == "fp8_block":
                scale = torch.empty(count, -(-rows // group_n), -(-columns // group_k))
            else:
                scale = torch.empty(count, rows, 1) if how == "fp8_per_channel" else torch.empty(count)
        elif how == "int8":
            weight, scale = torch.empty(count, rows, columns, dtype=torch.int8), torch.empty(count, rows, 1)
        else:
            packed = 2 if how == "int4_w4a16" else 1
            weight = torch.empty(count, rows, columns // packed, dtype=torch.uint8)
            if columns % group_k:
                raise UsageError(f"group_k: {group_k} does not divide the {columns} columns of {name}")
            scale = torch.empty(count, rows, columns // group_k, dtype=dtype)
        given[name] = weight
        if scale is not None:
            given[f"{name}_scale"] = scale
    if how.startswith("fp8"):
        given |= {"use_fp8_w8a8": True, "per_channel_quant": how == "fp8_per_channel"}
    elif how == "int8":
        given |= {"use_int8_w8a8": True, "per_channel_quant": True}
    elif how != "none":
        given[f"use_{how}"] = True
    if how == "fp8_block":
        given["block_shape"] = [group_n, group_k]
    elif how.endswith("a16"):
        given["block_shape"] = [0, group_k]
    return given


RECIPES = (
    Recipe(
        name="vllm.fused_moe",
        title="vLLM's Triton fused mixture of experts",
        call=_call,
        library="vllm",
        since="0.7.1",
        kernels=("fused_moe_kernel", "fused_moe_kernel_gptq_awq"),
        files=("fused_moe/fused_moe.py", "fused_moe/experts/triton_moe.py"),
        real=(
            r"vllm\.model_executor\.layers\.fused_moe\.(?:fused_moe|config|utils|activation|modular_kernel)",
            r"vllm\.model_executor\.layers\.fused_moe\.moe_align_block_size",
            r"vllm\.model_executor\.layers\.quantization\.utils\.(?:fp8_utils|int8_utils|quant_utils)",
            r"vllm\.utils\.platform_utils",
        ),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the activations", fact="dtype"),
            Parameter("quantisation", "none", "how the experts are quantised", tries=_QUANTISED, choices=_QUANTISED),
            Parameter("experts", 128, "experts of a layer on one card", tries=(8, 64, 128, 256)),
            Parameter("top_k", 8, "experts a token is sent to"),
            Parameter("hidden", 4096, "elements of a hidden state"),
            Parameter("intermediate", 1408, "columns of an expert's down projection on one card"),
            Parameter(
                "tokens", 2048, "tokens of a step; the wrapper chooses its tile by them", tries=(1, 16, 64, 256, 2048)
            ),
            Parameter("group_n", 128, "rows of the weight that share a scale (fp8_block)"),
            Parameter("group_k", 128, "columns of the weight that share a scale (fp8_block, w8a16, w4a16)"),
        ),
        levers={"tile": "BLOCK_SIZE_N", "tile_m": "BLOCK_SIZE_M", "tile_k": "BLOCK_SIZE_K"},
        vary={"num_stages": (2, 3, 4), "BLOCK_SIZE_M": (16, 32, 64, 128), "BLOCK_SIZE_N": (32, 64, 128)},
    ),
)
