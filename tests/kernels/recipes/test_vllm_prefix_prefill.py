"""vLLM's prefill over a cached prefix.

"Printed" below: vllm PR 11584 prints 65,536 > 49,152 on a Tesla P40 (sm_61) in December 2024, when tiles were
64 x 64; pascal-pkgs-ci issue 50 prints 98,304 > 49,152 on Pascal in October 2025, when they are 128 x 64. Neither
says its head size (128 is assumed here) nor an exact release, and both ran an older Triton.
"""

from __future__ import annotations

import pytest

from tests.kernels.compiling import bytes_of, compile_cells, nvidia

NAME = "vllm.prefix_prefill"
FP32 = {"dtype": "float32"}
ALIBI = {"alibi": True}


@pytest.mark.parametrize(("version", "required"), [("0.6.5", 65_536), ("0.10.2", 98_304)])  # both printed
def test_pascal(version: str, required: int) -> None:
    (outcome,) = compile_cells(NAME, nvidia(61), [{}], version)
    assert bytes_of(outcome) == required
    assert not outcome.stand_ins


SHAPES = [{}, {"head_size": 64}, FP32, ALIBI, ALIBI | FP32]


@pytest.mark.parametrize("version", ["0.9.0", "0.33.0"])
def test_turing_asks_for_more_than_it_has(version: str) -> None:
    required = [bytes_of(one) for one in compile_cells(NAME, nvidia(75), SHAPES, version)]
    assert required == [98_304, 65_536, 131_072, 65_536, 36_864]


def test_ampere_does_not_but_for_alibi_in_32_bits() -> None:
    required = [bytes_of(one) for one in compile_cells(NAME, nvidia(86), SHAPES, "0.33.0")]
    assert required == [49_152, 24_576, 98_304, 65_536, 114_688]


def test_a_page_that_is_no_power_of_two_had_smaller_tiles_for_a_while() -> None:
    odd = {"block_size": 544}  # Qwen3-Next
    assert [bytes_of(compile_cells(NAME, nvidia(86), [odd], version)[0]) for version in ("0.19.1", "0.33.0")] == [
        18_432,
        49_152,
    ]
    (refused,) = compile_cells(NAME, nvidia(86), [odd], "0.9.0")
    assert refused.failure
    assert "power of 2" in refused.failure.message


def test_a_cache_of_8_bit_floats() -> None:
    (outcome,) = compile_cells(NAME, nvidia(89), [{"kv_cache_dtype": "fp8"}], "0.33.0")
    assert bytes_of(outcome) == 49_152
