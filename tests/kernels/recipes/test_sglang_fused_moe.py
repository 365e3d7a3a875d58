"""SGLang's expert layer against the figures that public reports print.

"Printed" below: 147,456 on cards of 101,376 bytes, by sglang issues 8513 (0.4.9, GLM-4.5-Air-FP8, 4 ranks),
9393 and zai-org/GLM-V issue 154 (0.5.0/0.5.1, GLM-4.5V-FP8), 21782 (0.5.10, not compiled here), 28019 and PR 28038 (0.5.12, Gemma 4
on a GB10; the pull request names the tile 128, 256, 128 with 8 warps and 4 stages).
"""

from __future__ import annotations

import msgspec
import pytest

from tests.kernels.compiling import amd, bytes_of, compile_cells, kernel_of, nvidia

NAME, KERNEL = "sglang.fused_moe", "fused_moe_kernel"
GLM = {"quantisation": "fp8_per_channel", "experts": 128, "hidden": 4096, "intermediate": 352}
GEMMA = {"quantisation": "fp8_per_channel", "experts": 128, "hidden": 2816, "intermediate": 704}


@pytest.mark.parametrize(("version", "arch", "shape"), [("0.4.9.post6", 120, GLM), ("0.5.12.post1", 121, GEMMA)])
def test_per_channel_fp8_as_printed(version: str, arch: int, shape: dict) -> None:
    (outcome,) = compile_cells(NAME, nvidia(arch), [shape], version)
    kernel = kernel_of(outcome, KERNEL)
    assert kernel.required_bytes == 147_456
    assert kernel.ledger.residual == 0
    tile = [kernel.settings[f"BLOCK_SIZE_{name}"] for name in "MNK"]
    assert (tile, kernel.settings["num_warps"], kernel.settings["num_stages"]) == ([128, 256, 128], 8, 4)


def test_what_else_the_release_of_the_reports_asks_for() -> None:
    cells = [GLM, {**GLM, "tokens": 1}, {}, {"quantisation": "int4_w4a16"}]
    outcomes = compile_cells(NAME, nvidia(89), cells, "0.5.1")
    assert [bytes_of(one) for one in outcomes] == [147_456, 73_728, 16_384, 12_288]  # the first: printed


def test_the_newest_asks_the_card_for_its_limit_and_takes_its_tuned_configuration() -> None:
    (small,) = compile_cells(NAME, nvidia(89), [GLM], "0.5.23")
    assert bytes_of(small, KERNEL) == 49_152
    blocks = {**GLM, "quantisation": "fp8_block", "intermediate": 384}
    card = msgspec.structs.replace(nvidia(90), name="NVIDIA H200")
    large, tuned = compile_cells(NAME, card, [GLM, blocks], "0.5.23")
    assert bytes_of(large, KERNEL) == 196_608
    assert kernel_of(tuned, KERNEL).settings["num_stages"] == 4  # the default has 3
    assert any(
        path.endswith("device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json") for path in tuned.files
    )


def test_amd_takes_half_the_stages() -> None:
    (outcome,) = compile_cells(NAME, amd("gfx942"), [GLM], "0.4.9.post6")
    assert bytes_of(outcome, KERNEL) == 49_152
    assert outcome.kernels[0].settings["num_stages"] == 2


def test_an_old_release_says_what_it_lacks() -> None:
    plain, refused = compile_cells(NAME, nvidia(80), [{}, GLM], "0.4.0")
    assert bytes_of(plain) == 16_384
    assert refused.failure
    assert "per_channel_quant" in refused.failure.message
