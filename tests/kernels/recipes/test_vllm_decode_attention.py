"""vLLM's decode attention against the figures that public reports print.

"Printed" below: vllm issues 46721 and 53748, Lvllm issue 77 and vllm PR 46728 print 102,400 on sm_120
and sm_121 with an FP8 cache; vllm PR 54013 prints all four figures of its table (Triton 3.7.0); 1Cat-vLLM
PR 211 prints 102,400 and 69,632 on sm_70 and says that stages change nothing there.
"""

from __future__ import annotations

import pytest

from oortriage.replay.job import Cell
from tests.kernels.compiling import amd, bytes_of, compile_cells, nvidia

NAME = "vllm.decode_attention"
GROUPED = "_fwd_grouped_kernel_stage1"
FP8 = {"kv_dtype": "float8_e4m3fn"}
FP16 = {"dtype": "float16"}
PER_HEAD = {"mla": False, "head_size": 128, "v_head_size": 0, "kv_heads": 4}


def test_the_four_figures_of_pr_54013() -> None:
    cells = [Cell(), Cell(overrides={"num_stages": 1}), Cell(FP8), Cell(FP8, {"num_stages": 1})]
    outcomes = compile_cells(NAME, nvidia(121), cells, "0.27.1")
    assert [bytes_of(one, GROUPED) for one in outcomes] == [63_488, 59_392, 102_400, 83_968]  # all printed
    assert not outcomes[0].stand_ins  # nothing was made up
    assert all(kernel.ledger.residual == 0 for one in outcomes for kernel in one.kernels)


def test_volta_as_printed_and_turing_alike() -> None:
    cells = [Cell(FP16), Cell(FP16, {"num_stages": 1}), Cell(FP16, {"BLOCK_N": 16})]
    outcomes = compile_cells(NAME, nvidia(70), cells, "0.27.1")
    assert [bytes_of(one, GROUPED) for one in outcomes] == [102_400, 102_400, 69_632]  # all printed
    (turing,) = compile_cells(NAME, nvidia(75), [FP16], "0.27.1")
    assert bytes_of(turing, GROUPED) == 102_400


@pytest.mark.parametrize(
    ("version", "bf16", "fp8"),
    [
        ("0.10.2", 89_088, None),  # TRITON_MLA refuses FP8 caches before 0.18
        ("0.19.1", 89_088, 87_040),
        ("0.20.0", 63_488, 102_400),  # printed for 0.26 and 0.27; the values are taken from the keys' tile from here on
        ("0.33.0", 63_488, 102_400),
    ],
)
def test_what_each_release_asks_for(version: str, bf16: int, fp8: int | None) -> None:
    shapes = [{}, {"q_per_kv": 4, **PER_HEAD}, {"q_per_kv": 1, **PER_HEAD}] + ([FP8] if fp8 else [])
    outcomes = compile_cells(NAME, nvidia(86 if not fp8 else 120), shapes, version)
    assert bytes_of(outcomes[0], GROUPED) == bf16
    assert bytes_of(outcomes[1], GROUPED) == 21_504
    assert bytes_of(outcomes[2], "_fwd_kernel_stage1") == 2_048
    if fp8:
        assert bytes_of(outcomes[3], GROUPED) == fp8


def test_amd_takes_half_the_tile() -> None:
    (outcome,) = compile_cells(NAME, amd("gfx942"), [{}], "0.33.0")
    assert bytes_of(outcome, GROUPED) == 16_384


def test_cards_before_ada_have_no_such_float() -> None:
    (outcome,) = compile_cells(NAME, nvidia(80), [FP8], "0.27.1")
    assert outcome.failure
    assert "fp8e4nv not supported" in outcome.failure.message
