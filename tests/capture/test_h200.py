"""Capsules written on an NVIDIA H200 (2026-11-30, PyTorch 2.11.0, Triton 3.6.0), compiled again without one.

``flex_attention.json``: PyTorch's flex_attention under torch.compile with tiles that do not fit, launched by
Inductor's own launcher; its text is PyTorch's template. ``torch_compile.json``: a kernel of a user's under
torch.compile. A ``max-autotune`` product of which two of 16 choices did not fit left none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from oortriage.replay.options import Options
from oortriage.replay.reproduce import reproduce
from oortriage.replay.selection import select

HERE = Path(__file__).parent / "h200"


@pytest.mark.parametrize(
    ("name", "required", "kernel"),
    [
        ("flex_attention", 458_752, "triton_tem_fused__to_copy_flex_attention_ones_slice_sort_sum_transpose_zeros_2"),
        ("torch_compile", 2_097_152, "product"),
    ],
)
def test_reproduced_to_the_byte(
    name: str, required: int, kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton", reason="needs Triton (no GPU)")
    monkeypatch.setenv("OORTRIAGE_CACHE", str(tmp_path))
    found = reproduce(select(Options(kernel=str(HERE / f"{name}.json"))), cell_seconds=400)
    if not found.triton.startswith("3.6"):
        pytest.skip(f"the figure is of Triton 3.6, compiled was with {found.triton}")
    assert (found.verdict, found.required_bytes, found.limit_bytes) == ("reproduced", required, 232_448)
    assert (found.function, found.gpu, found.residual_bytes) == (kernel, "NVIDIA H200", 0)
