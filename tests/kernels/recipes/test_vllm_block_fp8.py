"""vLLM's block-scaled FP8 product: its default tile, and tuned ones of a card.

vllm issue 12498 (66,560 on MI300X, vLLM 0.7.1 with a ROCm build of Triton from between 3.1 and 3.2) is not
reproduced: those Tritons are older than the first that the adapter compiles with. Newer ones need less.
"""

from __future__ import annotations

import msgspec
import pytest

from oortriage.replay.job import Cell
from tests.kernels.compiling import amd, bytes_of, compile_cells, nvidia

NAME = "vllm.w8a8_block_fp8_matmul"
UNTUNED = {"rows": 3074}


@pytest.mark.parametrize(
    ("version", "kernel"), [("0.9.0", "_w8a8_block_fp8_matmul"), ("0.33.0", "_w8a8_triton_block_scaled_mm")]
)
def test_tuned_and_default_tile(version: str, kernel: str) -> None:
    card = msgspec.structs.replace(nvidia(90), name="NVIDIA H100 80GB HBM3")
    tuned, default = compile_cells(NAME, card, [{}, UNTUNED], version)
    assert (bytes_of(tuned, kernel), bytes_of(default, kernel)) == (49_152, 49_664)
    assert tuned.largest
    assert default.largest
    assert [tuned.largest.settings[f"BLOCK_SIZE_{name}"] for name in "MNK"] == [64, 64, 128]
    assert [default.largest.settings[f"BLOCK_SIZE_{name}"] for name in "MNK"] == [64, 128, 128]
    assert [file.rpartition("/")[2] for file in tuned.files if file.endswith(".json")] == [
        "N=1536,K=7168,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8,block_shape=[128,128].json"
    ]


def test_amd() -> None:
    cells = [Cell(UNTUNED), Cell(UNTUNED, {"num_stages": 3}), Cell(UNTUNED, {"num_stages": 1})]
    outcomes = compile_cells(NAME, amd("gfx942"), cells, "0.7.1")
    assert [bytes_of(one) for one in outcomes] == [24_576, 49_152, 16_384]
