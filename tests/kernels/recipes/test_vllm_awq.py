"""vLLM's AWQ kernels: tiles of 32, the same in all releases; no public report prints a figure."""

from __future__ import annotations

from tests.kernels.compiling import amd, bytes_of, compile_cells, nvidia

CELLS = [{}, {"phase": "dequantise"}]


def test_figures() -> None:
    for card, version, figures in (
        (nvidia(75), "0.9.0", [4_096, 2_048]),
        (nvidia(90), "0.33.0", [7_328, 2_048]),
        (amd("gfx942"), "0.33.0", [6_144, 16_384]),
    ):
        outcomes = compile_cells("vllm.awq", card, CELLS, version)
        assert [bytes_of(one) for one in outcomes] == figures
        assert not outcomes[0].stand_ins
