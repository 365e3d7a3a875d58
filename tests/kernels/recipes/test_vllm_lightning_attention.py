"""vLLM's lightning attention; vllm PR 41508 prints 131,584 > 101,376 for ``_fwd_kv_parallel`` on sm_86 (0.19.1)."""

from __future__ import annotations

import pytest

from oortriage.replay.job import Cell
from tests.kernels.compiling import bytes_of, compile_cells, nvidia

NAME = "vllm.lightning_attention"
PARALLEL, DIAGONAL, REST = "_fwd_kv_parallel", "_fwd_diag_kernel", "_fwd_none_diag_kernel"


@pytest.mark.parametrize("version", ["0.9.0", "0.19.1", "0.33.0"])
def test_prefill_of_128_elements_a_head(version: str) -> None:
    decode = {"phase": "decode"}
    outcomes = compile_cells(NAME, nvidia(86), [{}, {"tokens": 37, "heads": 3}, {"head_size": 64}, decode], version)
    for one in outcomes[:2]:  # neither tokens nor heads matter
        assert bytes_of(one, PARALLEL) == 131_584  # printed
        assert bytes_of(one, DIAGONAL) == 86_016
        assert bytes_of(one, REST) == 98_304
    assert bytes_of(outcomes[2], PARALLEL) == 66_048
    assert bytes_of(outcomes[3], "_linear_attn_decode_kernel") == 512
    assert not outcomes[0].stand_ins
    assert all(kernel.ledger.residual == 0 for kernel in outcomes[0].kernels)


def test_a_smaller_tile_or_one_stage_less_fits() -> None:
    # PR 41508 halves the tile, and with it doubles their number; the number changes no figure.
    cells = [
        Cell(overrides={"CBLOCK": 32}),
        Cell(overrides={"CBLOCK": 32, "NUM_CBLOCK": 8}),
        Cell(overrides={"num_stages": 2}),
    ]
    smaller, doubled, fewer = compile_cells(NAME, nvidia(86), cells, "0.19.1")
    assert bytes_of(smaller, PARALLEL) == bytes_of(doubled, PARALLEL) == 65_792
    assert bytes_of(fewer, PARALLEL) == 65_792


def test_turing_is_refused_by_vllm_itself() -> None:
    (outcome,) = compile_cells(NAME, nvidia(75), [{}], "0.33.0")
    assert outcome.failure
    assert "compute capability >= 80" in outcome.failure.message
