"""SGLang's Triton fused mixture of experts (0.4 and later): both matrix products of an expert layer."""

from __future__ import annotations

import inspect
from typing import Any

from oortriage.errors import UsageError
from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with

#: Where the wrapper lived, newest first; tuned configurations lie in ``configs`` beside it.
_FOLDERS = (
    "sglang.srt.layers.moe.moe_runner.triton_utils",
    "sglang.srt.layers.moe.fused_moe_triton",
    "sglang.srt.layers.fused_moe_triton",
)
#: Parameters of the wrapper that choose a quantisation.
_ASKED = ("use_", "per_channel", "block_shape")
_QUANTISED = (
    "none",
    "fp8",
    "fp8_per_channel",
    "fp8_block",
    "int8_per_channel",
    "int8_block",
    "int8_w8a16",
    "int4_w4a16",
)


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module(*(f"{folder}.fused_moe" for folder in _FOLDERS))
    experts, intermediate, tokens = shape["experts"], shape["intermediate"], shape["tokens"]
    _fetch_tuned(
        library, module.__name__.rpartition(".")[0].replace(".", "/") + "/configs", f"/E={experts},N={intermediate},"
    )
    dtype = getattr(torch, shape["dtype"])
    # "meta" tensors have a shape, a type and strides but no memory, so that any model's size will do.
    with torch.device("meta"), torch.compiler.set_stance("force_eager"):
        given: dict[str, Any] = {
            "hidden_states": torch.empty(tokens, shape["hidden"], dtype=dtype),
            "topk_weights": torch.empty(tokens, shape["top_k"], dtype=torch.float32),
            "topk_ids": torch.empty(tokens, shape["top_k"], dtype=torch.int32),
            "inplace": False,
            **_weights(shape, dtype),
        }
        # The signature grew over the releases; each gets what it has a parameter for.
        wanted = inspect.signature(module.fused_experts_impl).parameters
        if missing := [name for name in given if name.startswith(_ASKED) and given[name] and name not in wanted]:
            raise UsageError(f"quantisation: SGLang {library.version} has no {', '.join(missing)}")
        call_with(module.fused_experts_impl, given)


def _fetch_tuned(library: Library, folder: str, start: str) -> None:
    """Make the tuned configurations of a shape for this card local, so that SGLang's own code finds them.

    They lie in a folder a Triton release (``triton_3_5_1``); SGLang takes the running one's or, failing
    that, another's. Up to 0.4.3 they lay in one folder.
    """
    import torch

    device = f"device_name={torch.cuda.get_device_name().replace(' ', '_')}"
    library.data(folder, "README")  # the wrapper lists the folder, so it must be there
    for inner in ("", *(f"/triton_3_{minor}_{patch}" for minor in range(10) for patch in range(3))):
        library.data(folder + inner, start, device)


def _weights(shape: Shape, dtype: Any) -> dict[str, Any]:
    """Make the weights of both products as the loader of each quantisation lays them out."""
    import torch

    experts, hidden, intermediate = shape["experts"], shape["hidden"], shape["intermediate"]
    how, group_n, group_k = shape["quantisation"], shape["group_n"], shape["group_k"]
    # AMD's gfx94x computes with its own encoding of 8-bit floats; SGLang converts the weights to it.
    old_amd = torch.version.hip and torch.cuda.get_device_properties(0).gcnArchName.startswith("gfx94")
    fp8 = torch.float8_e4m3fnuz if old_amd else torch.float8_e4m3fn
    given: dict[str, Any] = {}
    for name, rows, columns in (("w1", 2 * intermediate, hidden), ("w2", hidden, intermediate)):
        packed = 2 if how == "int4_w4a16" else 1
        kind = dtype
        if how != "none":
            kind = fp8 if how.startswith("fp8") else torch.uint8 if how.endswith("a16") else torch.int8
        given[name] = torch.empty(experts, rows, columns // packed, dtype=kind)
        if how.endswith("block"):
            given[f"{name}_scale"] = torch.empty(experts, -(-rows // group_n), -(-columns // group_k))
        elif how.endswith("per_channel"):
            given[f"{name}_scale"] = torch.empty(experts, rows, 1)
        elif how == "fp8":
            given[f"{name}_scale"] = torch.empty(experts)
        elif how != "none":
            given[f"{name}_scale"] = torch.empty(experts, rows, columns // group_k, dtype=dtype)
    if how.startswith("fp8"):
        given["use_fp8_w8a8"] = True
    elif how.endswith("a16"):
        given[f"use_{how}"] = True
    elif how != "none":
        given["use_int8_w8a8"] = True
    given["per_channel_quant"] = how.endswith("per_channel")
    if how.endswith("block"):
        given["block_shape"] = [group_n, group_k]
    elif how.endswith("a16"):
        given["block_shape"] = [0, group_k]
    return given


RECIPES = (
    Recipe(
        name="sglang.fused_moe",
        title="SGLang's Triton fused mixture of experts",
        call=_call,
        library="sglang",
        since="0.4.0",
        kernels=("fused_moe_kernel", "fused_moe_kernel_gptq_awq"),
        files=(
            "fused_moe_triton/fused_moe.py",
            "fused_moe_triton/fused_moe_triton_kernels.py",
            "triton_utils/fused_moe.py",
            "triton_utils/fused_moe_triton_kernels.py",
            "ops/moe/fused_moe_triton_kernels.py",
        ),
        real=(
            *(rf"{folder.replace('.', chr(92) + '.')}\.(?:fused_moe\w*|moe_align_block_size)" for folder in _FOLDERS),
            r"sglang\.kernels\.ops\.moe\.(?:fused_moe_triton_kernels|moe_align_small_numel)",
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
            Parameter("group_n", 128, "rows of the weight that share a scale (fp8_block, int8_block)"),
            Parameter("group_k", 128, "columns of the weight that share a scale (fp8_block, int8_block, w8a16, w4a16)"),
        ),
        levers={"tile": "BLOCK_SIZE_N", "tile_m": "BLOCK_SIZE_M", "tile_k": "BLOCK_SIZE_K"},
        vary={"num_stages": (2, 3, 4), "BLOCK_SIZE_M": (16, 32, 64, 128), "BLOCK_SIZE_N": (32, 64, 128)},
    ),
)
