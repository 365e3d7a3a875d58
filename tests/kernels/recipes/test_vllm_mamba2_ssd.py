"""vLLM's Mamba-2 chunk scan: how many configurations of each autotuned kernel fit a card."""

from __future__ import annotations

from oortriage.replay.job import Kernel
from tests.kernels.compiling import compile_cells, nvidia

NAME = "vllm.mamba2_ssd"


def test_the_autotuners_leave_out_what_does_not_fit() -> None:
    card = nvidia(75)
    (outcome,) = compile_cells(NAME, card, [{}], "0.33.0")
    assert not outcome.failure

    def counted(kernels: list[Kernel]) -> tuple[int, int, int]:
        """Count configurations and those that do not fit, and say what the largest asks for."""
        required = [kernel.required_bytes for kernel in kernels]
        return len(required), sum(size > card.limit_bytes for size in required), max(required)

    assert counted([one for one in outcome.kernels if one.name == "_chunk_scan_fwd_kernel"]) == (23, 2, 131_072)
    assert counted([one for one in outcome.kernels if one.name == "_chunk_state_fwd_kernel"]) == (14, 0, 65_536)
    assert all(kernel.required_bytes <= card.limit_bytes for kernel in outcome.launched)


def test_states_had_the_models_type_in_old_releases() -> None:
    (outcome,) = compile_cells(NAME, nvidia(86), [{"initial_states": True}], "0.9.0")
    assert not outcome.failure
    assert {one.name for one in outcome.launched} >= {"_chunk_scan_fwd_kernel", "_chunk_state_varlen_kernel"}
