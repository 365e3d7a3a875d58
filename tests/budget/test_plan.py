"""A whole budget: what is filled in, what is refused, and the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from oortriage.budget.figure import Figure
from oortriage.budget.model import read_model
from oortriage.budget.plan import Budget, Settings, budget, prepare
from oortriage.errors import UsageError
from tests.budget.configs import GEMMA_3_4B, LLAMA_3_8B

GIB = 1 << 30
LLAMA = read_model(LLAMA_3_8B)


def made(size: Figure | float, config: dict[str, Any] = LLAMA_3_8B, **settings: Any) -> Budget:
    given = size if isinstance(size, Figure) else Figure(size, "bytes", "given", "--kv-memory")
    return budget(prepare(read_model(config), Settings(**{"version": "0.17.1", **settings})), given, name="it")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"version": "latest"}, "no vLLM release"), ({"block_size": -16}, "takes 1, 8, 16"),
        ({"tp": 3}, "does not divide"), ({"engine": "V0"}, "has no V0 engine"), ({"max_model_len": 0}, "not a count"),
        ({"max_num_batched_tokens": -1}, "max_num_batched_tokens -1: not a count"),
        ({"max_num_seqs": 0}, "max_num_seqs 0: not a count"), ({"blocks_override": 0}, "not a count"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(GIB, **settings)


def test_a_length_must_come_from_somewhere() -> None:
    silent = {**LLAMA_3_8B, "max_position_embeddings": None}
    with pytest.raises(UsageError, match="--max-model-len 8192"):
        made(GIB, silent)
    assert made(GIB, silent, max_model_len=4096).max_model_len == 4096
    assert made(GIB).max_model_len == 8192
    assert any("rope scaling" in note for note in made(4 * GIB, max_model_len=16384).notes)


@pytest.mark.parametrize(
    ("size", "settings", "verdict", "code", "words"),
    [
        (5 * GIB, {}, "starts", 0, "takes 20.0% of the pool"),
        (0.5 * GIB, {}, "refused", 1, "is taken for larger than the pool"),
        (0.0, {}, "refused", 1, "nothing is left for the KV cache"),
        (-GIB, {}, "refused", 1, "nothing is left for the KV cache"),
        (1.0, {}, "refused", 1, "not one block fits"),
        (GIB, {}, "starts_but_cannot_serve", 1, "cannot be served"),
        (Figure(2 * GIB, "bytes", "estimated", "", GIB / 2, 4 * GIB), {}, "undetermined", 3, "leave it open whether"),
        (
            Figure(2 * GIB, "bytes", "estimated", "", GIB / 2, 4 * GIB),
            {"config": GEMMA_3_4B, "max_model_len": 32768, "dtype": "float32"},
            "undetermined",
            3,
            "The engine starts; the estimates leave it open",
        ),
    ],
)
def test_verdicts(size: Figure | float, settings: dict[str, Any], verdict: str, code: int, words: str) -> None:
    found = made(size, **settings)
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert words in found.sentence


def test_the_longest_request_is_told_with_its_range() -> None:
    found = made(0.5 * GIB).largest_max_model_len
    assert (found.value, found.provenance) == (255 * 16, "derived")  # the engine keeps one block for itself
    guess = made(Figure(0.5 * GIB, "bytes", "estimated", "", 0.25 * GIB, GIB)).largest_max_model_len
    assert (guess.low, guess.value, guess.high) == (127 * 16, 255 * 16, 511 * 16)


def test_groups_alike_are_one_row() -> None:
    found = made(4 * GIB, GEMMA_3_4B, dtype="float32", tp=2, max_model_len=8192)
    assert [(row.kind, row.groups, row.layers) for row in found.groups] == [
        ("sliding", 5, 5), ("sliding", 1, 4), ("full", 1, 5),
    ]  # fmt: skip
    assert found.hybrid
    assert not made(4 * GIB).hybrid
