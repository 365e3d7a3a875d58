"""vLLM's compiled operators in the child process: there is no GPU, so they answer shapes and compute nothing.

Wrappers of Triton kernels call them in between: to quantise activations, to sort tokens by expert, to
apply an activation function. Most fill tensors they are given; only what returns new tensors needs more.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.stand_in import StandIn


def install_operators(noted: set[str]) -> None:
    """Let ``torch.ops`` have vLLM's namespaces, as it has once vLLM's extension is loaded.

    Args:
        noted: collects the names of the operators that were called.
    """
    import torch

    for namespace in ("_C", "_moe_C", "_rocm_C"):
        setattr(torch.ops, namespace, StandIn(f"torch.ops.{namespace}", noted))


def fill_custom_ops(module: ModuleType, card: Card) -> None:
    """Give ``vllm._custom_ops`` the operators that return tensors.

    Args:
        module: the stand-in.
        card: decides which 8-bit float it is.
    """
    import torch

    from oortriage.kernels.libraries.vllm import Platform

    def scales(data: Any, scale: Any, per_token: bool) -> Any:
        if scale is not None:
            return scale
        return data.new_empty((data.shape[0], 1) if per_token else (1,), dtype=torch.float32)

    def scaled_fp8_quant(
        data: Any,
        scale: Any = None,
        num_token_padding: int | None = None,
        scale_ub: Any = None,  # noqa: ARG001
        use_per_token_if_dynamic: bool = False,
        **_: Any,
    ) -> tuple[Any, Any]:
        rows = max(num_token_padding or 0, data.shape[0])
        quantised = data.new_empty((rows, *data.shape[1:]), dtype=Platform(card, set()).fp8_dtype())
        return quantised, scales(data, scale, use_per_token_if_dynamic)

    def scaled_int8_quant(data: Any, scale: Any = None, *_: Any, **__: Any) -> tuple[Any, Any, None]:
        return torch.empty_like(data, dtype=torch.int8), scales(data, scale, True), None

    module.__dict__.update(scaled_fp8_quant=scaled_fp8_quant, scaled_int8_quant=scaled_int8_quant)
