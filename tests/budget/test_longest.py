"""The longest request: one token more would not do."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.budget.figure import Figure
from oortriage.budget.kv import pool
from oortriage.budget.longest import longest_request
from tests.budget.test_pool import GIB, MODELS, V1, laid


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(V1), st.sampled_from(list(MODELS)), st.integers(0, 8 * GIB))
def test_one_token_more_would_not_do(version: str, model: str, size: int) -> None:
    layout = laid(model, version)
    found = longest_request(layout, size, ceiling=1 << 20)

    def works(length: int) -> bool:
        held = pool(layout, size, max_model_len=length)
        return bool(held.admitted and held.serves)

    assert not found or works(found)
    assert found == 1 << 20 or not works(found + 1)


def test_the_low_end_of_an_estimate_counts() -> None:
    layout = laid("llama", "0.17.1")
    guess = Figure(2 * GIB, "bytes", "estimated", "", GIB, 4 * GIB)
    assert longest_request(layout, guess) == longest_request(layout, GIB) == 511 * 16
