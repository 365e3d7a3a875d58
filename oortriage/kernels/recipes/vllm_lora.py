"""vLLM's Triton kernels of LoRA (0.9 to 0.33): hidden states down to the rank (shrink), and up again (expand)."""

from __future__ import annotations

import inspect
from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with

_FOLDER = "vllm.lora.ops.triton_ops"


def _shrink(library: Library, shape: Shape) -> None:
    import torch

    wrapper: Any = library.module(f"{_FOLDER}.lora_shrink_op")._lora_shrink  # noqa: SLF001 (what the custom operator calls)
    dtype = getattr(torch, shape["dtype"])
    tokens, slices, rank = shape["tokens"], shape["slices"], shape["rank"]
    weights = [torch.empty(shape["max_loras"], 1, rank, shape["hidden"], dtype=dtype) for _ in range(slices)]
    given = {
        "inputs": torch.empty(tokens, shape["hidden"], dtype=dtype),
        "lora_a_weights": weights,
        "output_tensor": torch.empty(slices, tokens, rank),  # always float32: the kernel adds atomically
        "scaling": 1.0,
    }
    _launch(library, wrapper, shape, given)


def _expand(library: Library, shape: Shape) -> None:
    import torch

    wrapper: Any = library.module(f"{_FOLDER}.lora_expand_op")._lora_expand  # noqa: SLF001 (what the custom operator calls)
    dtype = getattr(torch, shape["dtype"])
    tokens, slices, rank = shape["tokens"], shape["slices"], shape["rank"]
    weights = [torch.empty(shape["max_loras"], 1, shape["hidden"], rank, dtype=dtype) for _ in range(slices)]
    given = {
        "inputs": torch.empty(slices, tokens, rank),  # what shrink made
        "lora_b_weights": weights,
        "output_tensor": torch.empty(tokens, slices * shape["hidden"], dtype=dtype),
        "offset_start": 0,
        "add_inputs": True,
    }
    _launch(library, wrapper, shape, given)


def _launch(library: Library, wrapper: Any, shape: Shape, given: dict[str, Any]) -> None:
    """Call a wrapper with its own arguments and those about which token belongs to which LoRA."""
    import torch

    # The wrappers remember strides by the weights' addresses, which another shape's weights may have here.
    addresses = library.module(f"{_FOLDER}.utils")
    for name in ("_LORA_A_PTR_DICT", "_LORA_B_PTR_DICT"):
        getattr(addresses, name).clear()
    tokens, loras = shape["tokens"], shape["max_loras"] + 1  # one more for tokens without any
    wanted = inspect.signature(wrapper).parameters
    active: Any = torch.tensor([loras], dtype=torch.int32)
    if "num_active_loras" in wanted and wanted["num_active_loras"].annotation in (int, "int"):
        active = loras  # a plain number up to 0.19
    given = given | {
        "token_lora_mapping": torch.zeros(tokens, dtype=torch.int32),
        "token_indices_sorted_by_lora_ids": torch.zeros(tokens, dtype=torch.int32),
        "num_tokens_per_lora": torch.zeros(loras, dtype=torch.int32),
        "lora_token_start_loc": torch.zeros(loras + 1, dtype=torch.int32),
        "lora_ids": torch.zeros(loras, dtype=torch.int32),
        "no_lora_flag_cpu": torch.tensor([False]),
        "num_active_loras": active,
    }
    call_with(wrapper, given)


_PARAMETERS = (
    Parameter("dtype", "bfloat16", "element type of the model", fact="dtype", choices=("float16", "bfloat16")),
    Parameter("rank", 16, "greatest rank of a LoRA that the server takes", tries=(8, 16, 32, 64, 128, 256)),
    Parameter("hidden", 4096, "elements of the side that is not the rank, on one card"),
    Parameter("tokens", 2048, "tokens of a step; they select the tile", tries=(1, 2048)),
    Parameter("slices", 1, "projections done at once: 3 for Q, K and V, 2 for gate and up", tries=(1, 2, 3)),
    Parameter("max_loras", 4, "LoRAs that are served at once"),
)

RECIPES = (
    Recipe(
        name="vllm.lora_shrink",
        title="vLLM's Triton LoRA shrink (hidden states to the rank)",
        call=_shrink,
        library="vllm",
        since="0.9.0",
        kernels=("_lora_shrink_kernel",),
        files=("triton_ops/lora_shrink_op.py",),
        real=(r"vllm\.lora\.ops\.triton_ops\..*",),
        parameters=_PARAMETERS,
        levers={"tile": "BLOCK_K", "tile_m": "BLOCK_M", "tile_n": "BLOCK_N"},
        vary={"num_stages": (1, 2, 3), "BLOCK_K": (32, 64, 128, 256)},
    ),
    Recipe(
        name="vllm.lora_expand",
        title="vLLM's Triton LoRA expand (the rank to hidden states)",
        call=_expand,
        library="vllm",
        since="0.9.0",
        kernels=("_lora_expand_kernel",),
        files=("triton_ops/lora_expand_op.py",),
        real=(r"vllm\.lora\.ops\.triton_ops\..*",),
        parameters=_PARAMETERS,
        levers={"tile": "BLOCK_N", "tile_m": "BLOCK_M", "tile_k": "BLOCK_K"},
        vary={"num_stages": (1, 2, 3), "BLOCK_N": (32, 64, 128)},
    ),
)
