"""flash-linear-attention's gated delta rule: which configurations fit, before and after the distribution was split."""

from __future__ import annotations

from oortriage.replay.job import Cell, Outcome
from tests.kernels.compiling import compile_cells, nvidia

STATE, OUT = "chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "chunk_fwd_kernel_o"
#: The configurations differ in warps too, which moves none of the bytes asked for here and takes three times as long.
WARPS = {"num_warps": 4}
ONE = Cell({}, WARPS)


def figures(outcome: Outcome, name: str) -> list[int]:
    assert not outcome.failure, outcome.failure
    assert not outcome.stand_ins
    found = [kernel for kernel in outcome.kernels if kernel.name == name]
    assert all(kernel.ledger.residual == 0 for kernel in found)
    return sorted(kernel.required_bytes for kernel in found)


def test_a_release_with_the_operators_in_it() -> None:
    (outcome,) = compile_cells("fla.gated_delta_rule_0_3", nvidia(89), [ONE], "0.2.2")
    state = figures(outcome, STATE)
    assert (state[0], state[-1]) == (40_960, 147_456)
    assert max(kernel.required_bytes for kernel in outcome.launched) <= 101_376


def test_the_newest_asks_for_less() -> None:
    (outcome,) = compile_cells("fla.gated_delta_rule", nvidia(89), [ONE], "0.6.0")
    state = figures(outcome, STATE)
    assert (state[0], state[-1]) == (16_384, 65_796)
    assert figures(outcome, OUT)[-1] == 49_152


def test_value_heads_of_512_fit_in_no_configuration_of_0_3() -> None:
    # The shape of fla issue 241, whose printed figure is not known; the newest release fits (24,576).
    shape = {"phase": "backward", "head_size": 256, "v_head_size": 512}
    (outcome,) = compile_cells("fla.gated_delta_rule_0_3", nvidia(89), [Cell(shape, {"num_warps": 2})], "0.3.0")
    assert figures(outcome, "chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64")[0] == 127_236
