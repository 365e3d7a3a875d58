"""flash-linear-attention's gated delta rule in chunks, forward and backward: the operator of Gated DeltaNet.

Most of its kernels are autotuned, and some limit their tiles by the card's shared memory before that.
Nothing is timed here: the configuration launched is the first that fits, and the ones tried, with their
bytes, are what is known.
"""

from __future__ import annotations

from typing import Any

import msgspec

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with
from oortriage.kernels.tuning import forget_tuning


def _call(library: Library, shape: Shape) -> None:
    import torch

    module = library.module("fla.ops.gated_delta_rule.chunk")
    forget_tuning("fla")
    dtype, heads, tokens = getattr(torch, shape["dtype"]), shape["heads"], shape["tokens"]
    head, value_head = shape["head_size"], shape["v_head_size"] or shape["head_size"]
    backward = shape["phase"] == "backward"
    # "meta" tensors have a shape, a type and strides but no memory.
    with torch.device("meta"), torch.compiler.set_stance("force_eager"), torch.set_grad_enabled(backward):

        def empty(*sizes: int, kind: Any = dtype) -> Any:
            return torch.empty(1, tokens, heads, *sizes, dtype=kind, requires_grad=backward)

        given: dict[str, Any] = {
            "q": empty(head),
            "k": empty(head),
            "v": empty(value_head),
            "g": empty(kind=torch.float32),
            "beta": empty(),
            "scale": head**-0.5,
            "output_final_state": False,
            "use_qk_l2norm_in_kernel": True,
        }
        out, _state = call_with(module.chunk_gated_delta_rule, given)
        if backward:
            out.backward(torch.empty_like(out))


_RECIPE = Recipe(
    name="fla.gated_delta_rule",
    title="flash-linear-attention's gated delta rule in chunks (Gated DeltaNet), autotuned",
    call=_call,
    library="fla-core",
    since="0.3.2",
    kernels=(
        "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        "chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64",
        "chunk_fwd_kernel_o",
        "chunk_bwd_kernel_dqkwg",
        "chunk_bwd_kernel_dv_local",
        "chunk_scaled_dot_kkt_fwd_kernel",
        "recompute_w_u_fwd_kernel",
        "prepare_wy_repr_bwd_kernel",
    ),
    files=(
        "fla/ops/gated_delta_rule/chunk.py",
        "fla/ops/gated_delta_rule/wy_fast.py",
        "fla/ops/common/chunk_delta_h.py",
        "fla/ops/common/chunk_o.py",
        "fla/ops/common/chunk_scaled_dot_kkt.py",
        "fla/ops/utils/solve_tril.py",
    ),
    parameters=(
        Parameter("dtype", "bfloat16", "element type of the activations", fact="dtype"),
        Parameter("phase", "forward", "forward or backward", tries=("backward",), choices=("forward", "backward")),
        Parameter("head_size", 128, "elements of a query and key head", tries=(64, 128, 256)),
        Parameter("v_head_size", 0, "elements of a value head, 0 for the same", tries=(0, 256, 512)),
        Parameter("heads", 6, "heads on the card"),
        Parameter("tokens", 1024, "tokens of the sequence"),
    ),
    levers={"tile": "BV"},
    vary={"num_stages": (1, 2, 3), "BV": (16, 32, 64), "BK": (16, 32, 64)},
)

RECIPES = (
    _RECIPE,
    msgspec.structs.replace(
        _RECIPE, name="fla.gated_delta_rule_0_3", library="flash-linear-attention", since="0.1.2", until="0.3.1"
    ),
)
