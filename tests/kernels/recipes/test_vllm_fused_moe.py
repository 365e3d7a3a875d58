"""vLLM's fused mixture of experts: the tiles its wrapper chooses over the releases, and what they cost.

"Printed" below: the reports that print 147,456 (limit 101,376) are sglang issues 8513, 9393 and 28019,
sglang PR 28038 and GLM-V issue 154. They are SGLang's, whose default for 8-bit floats is 128 x 256 x 128,
8 warps and 4 stages; vLLM has no such default, and its kernel, which SGLang's comes from, gives the same
figure when that tile is forced.
"""

from __future__ import annotations

import msgspec
import pytest

from oortriage.replay.job import Cell, Outcome
from tests.kernels.compiling import amd, bytes_of, compile_cells, nvidia

NAME = "vllm.fused_moe"
KERNEL = "fused_moe_kernel"
CHANNEL, BLOCK = {"quantisation": "fp8_per_channel"}, {"quantisation": "fp8_block"}
INT8, INT4 = {"quantisation": "int8_w8a16"}, {"quantisation": "int4_w4a16"}
SGLANGS = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 128, "num_warps": 8, "num_stages": 4}


def tile(outcome: Outcome) -> tuple[int, ...]:
    """Return M, N and K of the largest kernel's tile."""
    assert outcome.largest
    return tuple(outcome.largest.settings[f"BLOCK_SIZE_{name}"] for name in "MNK")


@pytest.mark.parametrize(
    ("version", "plain", "channel", "float32", "tile_of_channel"),
    [("0.9.0", 16_384, 8_192, 32_768, (64, 64, 32)), ("0.33.0", 65_536, 65_536, 131_072, (128, 128, 128))],
)
def test_ada_per_release(
    version: str, plain: int, channel: int, float32: int, tile_of_channel: tuple[int, ...]
) -> None:
    cells = [Cell(), Cell(CHANNEL), Cell(BLOCK), Cell(INT4), Cell({"dtype": "float32"}), Cell(CHANNEL, SGLANGS)]
    outcomes = compile_cells(NAME, nvidia(89), cells, version)
    assert [bytes_of(one) for one in outcomes] == [
        plain,
        channel,
        49_664,
        12_288,
        float32,
        147_456,
    ]  # the last: printed
    assert tile(outcomes[1]) == tile_of_channel
    assert {kernel.name for kernel in outcomes[3].kernels} == {"fused_moe_kernel_gptq_awq"}
    assert sum(kernel.name == KERNEL for kernel in outcomes[0].kernels) == 2  # both products
    assert not outcomes[5].unused
    assert all(kernel.ledger.residual == 0 for one in outcomes for kernel in one.kernels)


def test_turing_pipelines_nothing() -> None:
    cells = [Cell({"dtype": "float16"}), Cell({"dtype": "float32"}), Cell(INT8 | {"dtype": "float16"})]
    outcomes = compile_cells(NAME, nvidia(75), cells, "0.33.0")
    assert [bytes_of(one) for one in outcomes[:2]] == [32_768, 65_536]  # the second just fits
    assert bytes_of(outcomes[2], "fused_moe_kernel_gptq_awq") == 8_192


def test_amd_takes_two_stages_because_three_need_twice_the_memory() -> None:
    cells = [Cell(), Cell(BLOCK), Cell(BLOCK, {"num_stages": 3})]
    outcomes = compile_cells(NAME, amd("gfx942"), cells, "0.9.0")
    assert [bytes_of(one, KERNEL) for one in outcomes] == [8_192, 24_576, 49_152]
    assert outcomes[1].largest
    assert outcomes[1].largest.settings["num_stages"] == 2


def test_a_tuned_configuration_of_the_card_is_read_from_the_same_wheel() -> None:
    card = msgspec.structs.replace(nvidia(90), name="NVIDIA H100 80GB HBM3")
    tuned, untuned = compile_cells(NAME, card, [{"experts": 8, "intermediate": 7168}, {}], "0.33.0")
    assert (bytes_of(tuned, KERNEL), tile(tuned)) == (196_608, (128, 256, 64))
    assert [file.rpartition("/")[2] for file in tuned.files if file.endswith(".json")] == [
        "E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json",
        "E=8,N=7168,device_name=NVIDIA_H100_80GB_HBM3.json",
    ]
    assert (bytes_of(untuned, KERNEL), tile(untuned)) == (98_304, (128, 128, 64))
