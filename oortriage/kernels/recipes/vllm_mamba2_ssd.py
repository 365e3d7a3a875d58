"""vLLM's Mamba-2 chunk scan (0.9 to 0.33): autotuned kernels, so the question is which configurations fit a card.

A card launches the fastest that fits. Nothing is timed here: the one launched is the first that fits,
and the ones tried, with their bytes, are what is known.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from oortriage.kernels._interface import Library, Parameter, Recipe, Shape
from oortriage.kernels.calling import call_with
from oortriage.kernels.rearrange import provide_einops

_OPS = "vllm.model_executor.layers.mamba.ops"


def _call(library: Library, shape: Shape) -> None:
    import torch

    provide_einops()
    module = library.module(f"{_OPS}.ssd_combined")
    _forget_tuning()
    dtype, state_type = getattr(torch, shape["dtype"]), getattr(torch, shape["state_dtype"])
    heads, head, groups, state = shape["heads"], shape["head_size"], shape["groups"], shape["state_size"]
    chunk, sequences = shape["chunk_size"], 2
    tokens = chunk * 4
    # The older function has a batch dimension in front, of one.
    batch: tuple[int, ...] = ()
    scan = getattr(module, "mamba_chunk_scan_combined_varlen", None)
    if scan is None:
        scan, batch = module.mamba_chunk_scan_combined, (1,)
    wanted = inspect.signature(scan).parameters
    if "state_dtype" not in wanted:
        state_type = dtype  # states had the model's type before there was a choice
    chunks = torch.arange(tokens // chunk + 1, dtype=torch.int32) * chunk
    by_chunk = "cu_chunk_seqlens" in wanted
    given: dict[str, Any] = {
        "x": torch.empty(*batch, tokens, heads, head, dtype=dtype),
        "dt": torch.empty(*batch, tokens, heads, dtype=dtype),
        "A": torch.empty(heads, dtype=torch.float32),
        "B": torch.empty(*batch, tokens, groups, state, dtype=dtype),
        "C": torch.empty(*batch, tokens, groups, state, dtype=dtype),
        "chunk_size": chunk,
        "D": torch.empty(heads, dtype=torch.float32),
        "dt_bias": torch.empty(heads, dtype=torch.float32),
        "cu_seqlens": torch.arange(sequences + 1, dtype=torch.int32) * (tokens // sequences),
        "cu_chunk_seqlens": chunks,
        "last_chunk_indices": torch.tensor([1, 3], dtype=torch.int32),
        "seq_idx": torch.zeros(len(chunks) - 1 if by_chunk else (*batch, tokens), dtype=torch.int32),
        "out": torch.empty(*batch, tokens, heads, head, dtype=dtype),
        "initial_states": None,
        "chunk_indices": None,
        "chunk_offsets": None,
        "dt_softplus": True,
        "state_dtype": state_type,
        "return_varlen_states": True,
    }
    if shape["initial_states"]:
        given["initial_states"] = torch.empty(sequences, heads, head, state, dtype=state_type)
        given["chunk_indices"] = torch.arange(len(chunks) - 1, dtype=torch.int32)
        given["chunk_offsets"] = torch.zeros(len(chunks) - 1, dtype=torch.int32)
    call_with(scan, given)


def _forget_tuning() -> None:
    """Empty the autotuners' memory, so that each call tries all configurations again and they are all noted."""
    from triton.runtime import Autotuner

    for name, module in list(sys.modules.items()):
        if name.startswith(f"{_OPS}."):
            for value in list(vars(module).values()):
                if isinstance(value, Autotuner):
                    value.cache.clear()
            vars(module).get("_autotuned_configs", {}).clear()


RECIPES = (
    Recipe(
        name="vllm.mamba2_ssd",
        title="vLLM's Mamba-2 chunk scan (state space duality), autotuned",
        call=_call,
        library="vllm",
        since="0.9.0",
        real=(r"vllm\.model_executor\.layers\.mamba\.ops\.(?:ssd_\w+|mamba_ssm|triton_helpers)",),
        kernels=(
            "_bmm_chunk_fwd_kernel",
            "_chunk_scan_fwd_kernel",
            "_chunk_cumsum_fwd_kernel",
            "_chunk_state_fwd_kernel",
            "_chunk_state_varlen_kernel",
            "_state_passing_fwd_kernel",
        ),
        files=(
            "mamba/ops/ssd_bmm.py",
            "mamba/ops/ssd_chunk_scan.py",
            "mamba/ops/ssd_chunk_state.py",
            "mamba/ops/ssd_state_passing.py",
            "mamba/ops/ssd_combined.py",
        ),
        parameters=(
            Parameter("dtype", "bfloat16", "element type of the model", fact="dtype"),
            Parameter("state_dtype", "float32", "element type of the state cache"),
            Parameter("head_size", 64, "elements a head of the scan", tries=(64, 128)),
            Parameter("state_size", 128, "elements of the state a channel", tries=(128, 16, 256)),
            Parameter("heads", 32, "heads on the card"),
            Parameter("groups", 1, "groups of B and C on the card"),
            Parameter("chunk_size", 256, "tokens a chunk", tries=(256, 128, 64)),
            Parameter("initial_states", False, "whether sequences continue", tries=(False, True)),
        ),
        levers={"tile": "BLOCK_SIZE_K"},
        vary={"num_stages": (1, 2, 3), "BLOCK_SIZE_K": (16, 32, 64)},
    ),
)
