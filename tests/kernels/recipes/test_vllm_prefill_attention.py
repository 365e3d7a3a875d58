"""vLLM's prefill attention without a cache: what each card and release asks for (no public report prints it yet)."""

from __future__ import annotations

import pytest

from tests.kernels.compiling import amd, bytes_of, compile_cells, kernel_of, nvidia

NAME = "vllm.prefill_attention"
SHAPES = [{}, {"head_size": 64}, {"dtype": "float32"}, {"head_size": 256}, {"head_size": 512}]


@pytest.mark.parametrize(
    ("version", "arch", "required"),
    [
        ("0.14.1", 75, [65_536, 32_768, 36_864, 131_072, 262_144]),
        ("0.14.1", 86, [65_536, 32_768, 36_864, 163_840, 294_912]),
        ("0.33.0", 75, [65_536, 32_768, 36_864, 131_072, 131_072]),  # the tile is capped from head size 512
        ("0.33.0", 86, [65_536, 32_768, 36_864, 163_840, 67_584]),
    ],
)
def test_figures(version: str, arch: int, required: list[int]) -> None:
    outcomes = compile_cells(NAME, nvidia(arch), SHAPES, version)
    assert [bytes_of(one) for one in outcomes] == required
    assert not outcomes[0].stand_ins


def test_rdna_gets_the_narrow_tile_and_cdna_does_not() -> None:
    (rdna,) = compile_cells(NAME, amd("gfx1100"), [{}], "0.33.0")
    (cdna,) = compile_cells(NAME, amd("gfx942"), [{}], "0.33.0")
    assert kernel_of(rdna, "_fwd_kernel").settings["BLOCK_N"] == 32
    assert kernel_of(cdna, "_fwd_kernel").settings["BLOCK_N"] == 128
    assert not rdna.stand_ins
