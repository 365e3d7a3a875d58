"""vLLM's LoRA kernels: the tiles that its wrappers choose over the releases; no public report prints a figure."""

from __future__ import annotations

import pytest

from tests.kernels.compiling import amd, bytes_of, compile_cells, nvidia

CELLS = [{}, {"tokens": 1}, {"slices": 3, "rank": 64}]


@pytest.mark.parametrize("version", ["0.9.0", "0.33.0"])
def test_shrink(version: str) -> None:
    outcomes = compile_cells("vllm.lora_shrink", nvidia(90), CELLS, version)
    assert [bytes_of(one, "_lora_shrink_kernel") for one in outcomes] == [3_072, 24_576, 3_072]


@pytest.mark.parametrize(
    ("version", "figures", "stages"),
    [("0.9.0", [12_288, 12_288, 8_192], 2), ("0.33.0", [16_384, 16_384, 12_288], 1)],
)
def test_expand(version: str, figures: list[int], stages: int) -> None:
    outcomes = compile_cells("vllm.lora_expand", nvidia(90), CELLS, version)
    assert [bytes_of(one, "_lora_expand_kernel") for one in outcomes] == figures
    assert {one.largest.settings["num_stages"] for one in outcomes if one.largest} == {stages}


def test_other_cards() -> None:
    half = [cell | {"dtype": "float16"} for cell in CELLS]
    turing = compile_cells("vllm.lora_shrink", nvidia(75), half, "0.33.0")
    assert [bytes_of(one) for one in turing] == [4_096, 32_768, 4_096]
    instinct = compile_cells("vllm.lora_expand", amd("gfx942"), CELLS, "0.33.0")
    assert [bytes_of(one) for one in instinct] == [16_384, 16_384, 12_288]
