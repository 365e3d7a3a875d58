"""vLLM's Triton kernels for AWQ (0.9 to 0.33): 4-bit weights multiplied as they are, or unpacked first."""

from __future__ import annotations

from typing import Any

from oortriage.errors import UsageError
from oortriage.kernels._interface import Library, Parameter, Recipe, Shape


def _call(library: Library, shape: Shape) -> None:
    import torch

    module: Any = library.module("vllm.model_executor.layers.quantization.awq_triton")
    dtype = getattr(torch, shape["dtype"])
    rows, columns, group = shape["rows"], shape["columns"], shape["group"]
    if columns % group or rows % 8:
        raise UsageError(f"the group of {group} must divide the {columns} columns, and 8 the {rows} rows")
    # "meta" tensors have a shape, a type and strides but no memory. Eight 4-bit weights are one number.
    with torch.device("meta"):
        weight = torch.empty(columns, rows // 8, dtype=torch.int32)
        scales = torch.empty(columns // group, rows, dtype=dtype)
        zeros = torch.empty(columns // group, rows // 8, dtype=torch.int32)
        if shape["phase"] == "dequantise":
            module.awq_dequantize_triton(weight, scales, zeros)
        else:
            module.awq_gemm_triton(torch.empty(shape["tokens"], columns, dtype=dtype), weight, scales, zeros, 8)


RECIPES = (
    Recipe(
        name="vllm.awq",
        title="vLLM's Triton AWQ kernels (used on AMD, and where VLLM_USE_TRITON_AWQ is set)",
        call=_call,
        library="vllm",
        since="0.9.0",
        kernels=("awq_gemm_kernel", "awq_dequantize_kernel"),
        files=("quantization/awq_triton.py",),
        real=(r"vllm\.model_executor\.layers\.quantization\.awq_triton",),
        parameters=(
            Parameter("dtype", "float16", "element type of the activations", fact="dtype"),
            Parameter(
                "phase",
                "multiply",
                "below 256 tokens vLLM multiplies, from there it unpacks the weights first",
                tries=("multiply", "dequantise"),
                choices=("multiply", "dequantise"),
            ),
            Parameter("rows", 4096, "outputs of the layer on one card"),
            Parameter("columns", 4096, "inputs of the layer on one card"),
            Parameter("group", 128, "inputs that share a scale"),
            Parameter("tokens", 16, "tokens of a step"),
        ),
        levers={"tile": "BLOCK_SIZE_N", "tile_m": "BLOCK_SIZE_M", "tile_k": "BLOCK_SIZE_K"},
        vary={"num_stages": (1, 2, 3), "BLOCK_SIZE_N": (32, 64, 128)},
    ),
)
