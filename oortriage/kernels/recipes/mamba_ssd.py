"""mamba_ssm's Mamba-2 chunk scan, forward and backward (2.2 and later): every kernel is autotuned.

A card launches the fastest configuration that fits. Nothing is timed here: the one launched is the
first that fits, and the ones tried, with their bytes, are what is known. A kernel of which none fits
is launched all the same, as Triton does, and that is the crash. Releases before 2.2 call functions that
Triton 3 no longer has.
"""

from __future__ import annotations

from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with
from oortriage.kernels.tuning import forget_tuning

_FORWARD = (
    "_chunk_cumsum_fwd_kernel",
    "_chunk_state_fwd_kernel",
    "_state_passing_fwd_kernel",
    "_bmm_chunk_fwd_kernel",
    "_chunk_scan_fwd_kernel",
    "_chunk_state_varlen_kernel",
)
_BACKWARD = (
    "_chunk_scan_bwd_dstates_kernel",
    "_chunk_scan_bwd_dc_kernel",
    "_chunk_scan_bwd_dcb_kernel",
    "_chunk_scan_bwd_dz_kernel",
    "_chunk_scan_bwd_ddAcs_stable_kernel",
    "_chunk_scan_chunk_state_bwd_dx_kernel",
    "_chunk_state_bwd_db_kernel",
    "_bmm_chunk_bwd_kernel",
    "_state_passing_bwd_kernel",
    "_chunk_cumsum_bwd_kernel",
)


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module("mamba_ssm.ops.triton.ssd_combined")
    forget_tuning("mamba_ssm")
    dtype = getattr(torch, shape["dtype"])
    heads, head, groups, state = shape["heads"], shape["head_size"], shape["groups"], shape["state_size"]
    chunk = shape["chunk_size"]
    tokens = 2 * chunk
    # "meta" tensors have a shape, a type and strides but no memory.
    with torch.device("meta"):
        given: dict[str, Any] = {
            "x": torch.empty(1, tokens, heads, head, dtype=dtype),
            "dt": torch.empty(1, tokens, heads, dtype=dtype),
            "A": torch.empty(heads),
            "B": torch.empty(1, tokens, groups, state, dtype=dtype),
            "C": torch.empty(1, tokens, groups, state, dtype=dtype),
            "chunk_size": chunk,
            "D": torch.empty(heads),
            "z": torch.empty(1, tokens, heads, head, dtype=dtype) if shape["gate"] else None,
            "dt_bias": torch.empty(heads),
            "dt_softplus": True,
        }
        if shape["phase"] == "forward":
            call_with(module.mamba_chunk_scan_combined, given)
        else:
            given |= {"out": torch.empty_like(given["x"]), "dout": torch.empty_like(given["x"])}
            backward = module._mamba_chunk_scan_combined_bwd  # noqa: SLF001 (what autograd calls)
            call_with(backward, given)


RECIPES = (
    Recipe(
        name="mamba_ssm.ssd",
        title="mamba_ssm's Mamba-2 chunk scan (state space duality), autotuned",
        call=_call,
        library="mamba_ssm",
        since="2.2.0",
        kernels=(*_FORWARD, *_BACKWARD),
        files=(
            "mamba_ssm/ops/triton/ssd_bmm.py",
            "mamba_ssm/ops/triton/ssd_chunk_scan.py",
            "mamba_ssm/ops/triton/ssd_chunk_state.py",
            "mamba_ssm/ops/triton/ssd_state_passing.py",
            "mamba_ssm/ops/triton/ssd_combined.py",
        ),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the activations", tries=("float32",), fact="dtype"),
            Parameter("phase", "forward", "forward or backward", tries=("backward",), choices=("forward", "backward")),
            Parameter("head_size", 64, "elements a head of the scan (headdim)", tries=(64, 128, 256, 512)),
            Parameter("state_size", 128, "elements of the state a channel (d_state)", tries=(128, 64, 16)),
            Parameter("heads", 8, "heads on the card"),
            Parameter("groups", 1, "groups of B and C on the card"),
            Parameter("chunk_size", 256, "tokens a chunk", tries=(256, 128, 64)),
            Parameter("gate", False, "whether z is given, as where the norm is not behind the gate"),
        ),
        levers={"tile": "BLOCK_SIZE_K"},
        vary={"num_stages": (1, 2, 3), "BLOCK_SIZE_K": (16, 32, 64)},
    ),
)
