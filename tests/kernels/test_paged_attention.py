"""The batch and its float64 reference; and the embedded kernel, interpreted on the CPU, against it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from oortriage.kernels.live import CHECKED, TIMED, Batch, LiveCase
from tests.conftest import ROOT

torch = pytest.importorskip("torch")

SHAPE = {"dtype": "float32", "head_size": 64, "window": 0, "q_per_kv": 2, "kv_heads": 2, "block_size": 16}


def batch(*sequences: tuple[int, int], **changed):
    from oortriage.kernels.paged_attention import PagedBatch

    return PagedBatch({**SHAPE, **changed}, Batch("some", sequences), "cpu", 0)


def plain(one, index: int):
    """Attention of one sequence by torch's own function."""
    begin, end = int(one.starts[index]), int(one.starts[index + 1])
    total = int(one.lengths[index])
    pages = one.table[index, : -(-total // one.page)].long()
    keys, values = (cache[pages].flatten(0, 1)[:total].double() for cache in (one.keys, one.values))
    group = one.heads // one.kv_heads
    position = torch.arange(total - (end - begin), total)[:, None]
    key = torch.arange(total)[None, :]
    seen = key <= position
    if one.window:
        seen &= position - key < one.window
    out = torch.nn.functional.scaled_dot_product_attention(
        one.query[begin:end].double().transpose(0, 1),
        keys.repeat_interleave(group, 1).transpose(0, 1),
        values.repeat_interleave(group, 1).transpose(0, 1),
        attn_mask=seen,
        scale=one.scale,
    )
    return out.transpose(0, 1)


@pytest.mark.parametrize("window", [0, 5, 40])
@pytest.mark.parametrize("group", [1, 3])
def test_the_reference_is_torchs_attention(window: int, group: int) -> None:
    one = batch((20, 20), (1, 50), (7, 33), window=window, q_per_kv=group)
    wanted = torch.cat([plain(one, index) for index in range(3)])
    assert torch.allclose(one.reference(), wanted, rtol=0, atol=1e-12)


def test_scores_too_large_for_one_go_are_split_by_heads(monkeypatch) -> None:
    from oortriage.kernels import paged_attention

    one = batch((20, 20), (1, 50))
    whole = one.reference()
    monkeypatch.setattr(paged_attention, "_SCORES", 1)
    assert torch.equal(one.reference(), whole)


def test_pages_are_distinct_and_what_nobody_owns_is_a_page_of_its_own() -> None:
    one = batch((1, 1), (1, 100))
    owned = [one.table[0, :1], one.table[1, :7]]
    assert sorted(torch.cat(owned).tolist()) == list(range(8))
    assert set(one.table[0, 1:].tolist()) == {8}


def test_inputs_depend_on_the_seed_alone() -> None:
    from oortriage.kernels.paged_attention import PagedBatch

    one, same, other = (PagedBatch(SHAPE, CHECKED[0], "cpu", seed) for seed in (1, 1, 2))
    assert torch.equal(one.query, same.query)
    assert torch.equal(one.table, same.table)
    assert not torch.equal(one.query, other.query)


def test_operations_and_bytes_are_counted_by_hand() -> None:
    one = batch((2, 3))  # positions 1 and 2 see 2 and 3 keys
    assert one.flops == 4 * 5 * 4 * 64
    assert one.bytes_moved == 4 * (2 * 2 * 4 * 64 + 2 * 3 * 2 * 64)
    windowed = batch((2, 30), window=4)
    assert windowed.flops == 4 * 8 * 4 * 64
    assert windowed.bytes_moved == 4 * (2 * 2 * 4 * 64 + 2 * 5 * 2 * 64)


def test_what_is_not_written_shows() -> None:
    out = torch.zeros(4)
    case = LiveCase(lambda _: None, [out], lambda: torch.ones(4, dtype=torch.float64), 1, 1)
    case.poison()
    out[:3] = 1
    error, missing = case.error()
    assert missing == 1
    assert error == pytest.approx(0.5)


@pytest.mark.parametrize("batches", [CHECKED, TIMED])
def test_every_batch_has_no_more_new_tokens_than_tokens(batches) -> None:
    assert all(0 < new <= total for one in batches for new, total in one.sequences)


INTERPRETED = """
from oortriage.kernels.live import Batch
from oortriage.kernels.recipes.reference_attention import RECIPES

batches = (
    Batch("prefill", ((40, 40), (33, 33), (1, 1), (17, 40), (16, 16))),
    Batch("decode", ((1, 150), (1, 1), (1, 17), (1, 33))),
    Batch("mixed", ((1, 70), (30, 30), (1, 16), (10, 130), (2, 33))),
)
for window in (0, 100):
    for group in (1, 3):
        shape, _ = RECIPES[0].shape({"dtype": "float32", "head_size": 48, "window": window, "tile": 16, "q_per_kv": group})
        for batch in batches:
            case = RECIPES[0].live(None, shape, batch, "cpu", 0, 1)
            case.poison()
            case.call(0)
            error, missing = case.error()
            assert missing == 0 and error < 1e-6, (window, group, batch.name, error, missing)
            print("right")
"""


def test_the_embedded_kernel_computes_attention() -> None:
    pytest.importorskip("triton")
    pytest.importorskip("numpy")
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED],
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.count("right") == 12, done.stderr[-2000:]
