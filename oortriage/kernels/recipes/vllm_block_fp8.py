"""vLLM's Triton matrix product with block-scaled 8-bit floats (0.7 to 0.33): linear layers of DeepSeek-like models."""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.libraries.vllm_tuned import fetch_tuned

_FOLDER = "vllm.model_executor.layers.quantization.utils"


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(f"{_FOLDER}.fp8_utils")
    rows, columns, tokens = shape["rows"], shape["columns"], shape["tokens"]
    block = [shape["group_n"], shape["group_k"]]
    # The wrapper looks for a tuned configuration beside itself; the file must be there for it.
    fetch_tuned(library, f"{_FOLDER.replace('.', '/')}/configs", f"N={rows},K={columns},")
    element = library.module("vllm.platforms").current_platform.fp8_dtype()
    # Renamed in 0.11.1; arguments and meaning stayed.
    names = ("w8a8_triton_block_scaled_mm", "w8a8_block_fp8_matmul")
    wrapper: Any = next(getattr(module, name) for name in names if hasattr(module, name))
    # "meta" tensors have a shape, a type and strides but no memory, so that any model's size will do.
    with torch.device("meta"):
        wrapper(
            torch.empty(tokens, columns, dtype=element),
            torch.empty(rows, columns, dtype=element),
            torch.empty(tokens, -(-columns // block[1]), dtype=torch.float32),
            torch.empty(-(-rows // block[0]), -(-columns // block[1]), dtype=torch.float32),
            block,
            output_dtype=getattr(torch, shape["dtype"]),
        )


RECIPES = (
    Recipe(
        name="vllm.w8a8_block_fp8_matmul",
        title="vLLM's Triton matrix product with block-scaled 8-bit floats",
        call=_call,
        library="vllm",
        since="0.7.1",
        kernels=("_w8a8_block_fp8_matmul", "_w8a8_triton_block_scaled_mm"),
        files=("quantization/utils/fp8_utils.py",),
        real=(
            r"vllm\.model_executor\.layers\.quantization\.utils\.(?:fp8_utils|quant_utils)",
            r"vllm\.utils\.platform_utils",
        ),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the result", fact="dtype"),
            Parameter("rows", 1536, "rows of the weight on one card (N)"),
            Parameter("columns", 7168, "columns of the weight on one card (K)"),
            Parameter("tokens", 2048, "tokens of a step (M); they select the tuned tile", tries=(1, 64, 2048)),
            Parameter("group_n", 128, "rows of the weight that share a scale"),
            Parameter("group_k", 128, "columns of the weight that share a scale"),
        ),
        levers={"tile": "BLOCK_SIZE_N", "tile_m": "BLOCK_SIZE_M", "tile_k": "BLOCK_SIZE_K"},
        vary={"num_stages": (1, 2, 3, 4), "BLOCK_SIZE_M": (16, 32, 64, 128)},
    ),
)
