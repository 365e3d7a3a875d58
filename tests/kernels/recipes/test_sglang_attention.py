"""SGLang's three Triton attentions against the figures that public reports print.

"Printed" below: sglang PR 17908 prints 106,496 on sm_120 (issues 14322 and ktransformers 1570 are the same
call), sglang PR 27962 prints 131,072 on sm_120, sglang issue 2384 prints 131,072 on an MI300 (gfx942) with
DeepSeek-V2-Lite in December 2024 while decode graphs were captured.
"""

from __future__ import annotations

import pytest

from oortriage.replay.job import Cell, Outcome
from tests.kernels.compiling import amd, bytes_of, compile_cells, nvidia

EXTEND, DECODE, CONTEXT = "sglang.extend_attention", "sglang.decode_attention", "sglang.context_attention"
LATENT = {"head_size": 576, "v_head_size": 512, "q_per_kv": 16}


def exact(outcomes: list[Outcome]) -> list[int]:
    """The largest figure of each cell; every byte is accounted for and nothing was made up."""
    assert all(kernel.ledger.residual == 0 for one in outcomes for kernel in one.kernels)
    assert not any(one.stand_ins for one in outcomes)
    return [bytes_of(one) for one in outcomes]


@pytest.mark.parametrize(
    ("version", "figures"),
    [
        ("0.4.0", [106_496, 49_152]),
        ("0.5.5.post3", [106_496, 49_152]),  # printed
        ("0.5.23", [71_680, 65_536]),  # from 0.5.10 on sm_120 has tiles of its own
    ],
)
def test_extend_on_workstation_blackwell(version: str, figures: list[int]) -> None:
    assert exact(compile_cells(EXTEND, nvidia(120), [LATENT, {}], version)) == figures


def test_extend_options_change_no_byte_in_the_newest() -> None:
    cells = [{"window": 1024, "sinks": True}, {"custom_mask": True}, {"deterministic": True}]
    outcomes = compile_cells(EXTEND, nvidia(120), cells, "0.5.23")
    assert exact(outcomes) == [65_536] * 3
    assert outcomes[2].kernels[0].name == "_fwd_kernel_unified"


def test_a_smaller_tile_fits() -> None:
    (outcome,) = compile_cells(EXTEND, nvidia(120), [Cell(LATENT, {"BLOCK_N": 32})], "0.5.5.post3")
    assert bytes_of(outcome) == 71_680  # what later releases choose


def test_extend_on_turing_and_amd() -> None:
    assert exact(compile_cells(EXTEND, nvidia(75), [LATENT, {}], "0.4.6")) == [139_264, 65_536]
    assert exact(compile_cells(EXTEND, amd("gfx942"), [LATENT, {}], "0.4.6")) == [65_536, 16_384]


@pytest.mark.parametrize(
    ("version", "stage1", "largest"),
    [
        ("0.4.0", 65_536, 131_072),  # printed; the second stage kept all logits
        ("0.5.23", 16_384, 16_384),  # half the tile for AMD
    ],
)
def test_decode_on_mi300(version: str, stage1: int, largest: int) -> None:
    (outcome,) = compile_cells(DECODE, amd("gfx942"), [LATENT], version)
    assert bytes_of(outcome, "_fwd_grouped_kernel_stage1") == stage1
    assert exact([outcome]) == [largest]


def test_decode_on_workstation_blackwell() -> None:
    cells = [LATENT, {}, {"q_per_kv": 1}]
    assert exact(compile_cells(DECODE, nvidia(120), cells, "0.5.8")) == [89_088, 21_504, 2_048]
    cells = [*cells, {**LATENT, "kv_dtype": "float8_e4m3fn"}]
    assert exact(compile_cells(DECODE, nvidia(120), cells, "0.5.23")) == [63_488, 21_504, 2_048, 45_056]


@pytest.mark.parametrize("version", ["0.4.0", "0.5.12.post1"])
def test_context_attention(version: str) -> None:
    shapes = [{"dtype": "float32"}, {"dtype": "float32", "head_size": 80}, {}]
    # 131,072: printed (0.5.12)
    assert exact(compile_cells(CONTEXT, nvidia(120), shapes, version)) == [131_072, 131_072, 65_536]
