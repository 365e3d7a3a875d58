"""On a real card, where there is one: the same claims as in docs/evidence/h200.md, in small."""

from __future__ import annotations

import pytest

from oortriage.replay.live_grid import live_grid
from oortriage.replay.options import Options
from oortriage.replay.selection import select

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


@pytest.mark.parametrize(
    ("gpu", "wanted", "statuses"),
    [("T4", "emulated", ["out_of_resources", "ran"]), ("H200", "native", ["ran", "ran"])],
)
def test_prediction_and_card_agree(gpu: str, wanted: str, statuses: list[str]) -> None:
    options = Options(kernel="reference.attention", gpu=gpu, settings={"dtype": "float32", "head_size": 256})
    grid = live_grid(select(options), [{"TILE_SIZE": 32}, {"TILE_SIZE": 16}], wanted, cell_seconds=240)
    assert grid.agrees, grid.notes
    assert [cell.result.status for cell in grid.cells] == statuses
    assert all(check.passed for cell in grid.cells for check in cell.result.checks)
