"""What a release schedules a step when nobody says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.budget.scheduler import scheduler_defaults
from oortriage.budget.versions import KNOWN, has_engine
from oortriage.evidence.values import GIB

CARDS = {"H200": 139.8, "A100-SXM4-80GB": 79.15, "L4": 22.05, "B200": 178.35, "GB10": 121.69, "MI300X": 191.69}


@pytest.mark.parametrize(
    ("version", "engine", "card", "usage", "length", "tokens", "seqs"),
    [
        ("0.6.3.post1", None, "H200", "server", 8192, 8192, 256),
        ("0.6.3.post1", None, "H200", "server", 1024, 2048, 256),
        ("0.6.3.post1", None, "H200", "server", 131072, 512, 256),
        ("0.7.3", None, "L4", "llm", 131072, 2048, 256),
        ("0.7.3", "V1", "H200", "llm", 8192, 16384, 1024),
        ("0.7.3", "V1", "L4", "llm", 8192, 8192, 1024),
        ("0.8.0", None, "A100-SXM4-80GB", "server", 8192, 2048, 1024),
        ("0.8.5", None, "A100-SXM4-80GB", "server", 8192, 8192, 1024),
        ("0.9.0", None, "A100-SXM4-80GB", "server", 8192, 2048, 256),
        ("0.17.1", None, "H200", "llm", 8192, 16384, 1024),
        ("0.17.1", None, "H200", "server", 8192, 8192, 1024),
        ("0.17.1", None, "L4", "llm", 8192, 8192, 256),
        ("0.17.1", None, "L4", "server", 8192, 2048, 256),
        ("0.25.1", None, "B200", "server", 8192, 8192, 1024),
        ("0.28.0", None, "B200", "server", 8192, 16384, 1024),
        ("0.28.0", None, "GB10", "server", 8192, 8192, 1024),
        ("0.33.0", None, "GB10", "server", 8192, 2048, 256),
        # max_num_seqs x max_model_len bounds the tokens, from 0.11.2 on
        ("0.11.2", None, "L4", "llm", 16, 4096, 256),
        ("0.11.0", None, "L4", "llm", 16, 8192, 256),
    ],
)
def test_defaults(version: str, engine: str | None, card: str, usage: str, length: int, tokens: int, seqs: int) -> None:
    found = scheduler_defaults(
        version, total_bytes=CARDS[card] * GIB, card=card, usage=usage, max_model_len=length, engine=engine
    )
    assert (found.max_num_batched_tokens.value, found.max_num_seqs.value) == (tokens, seqs)
    assert "vLLM" in found.max_num_seqs.how


def test_what_the_user_set_stays() -> None:
    found = scheduler_defaults("0.17.1", total_bytes=None, max_num_batched_tokens=100, max_num_seqs=7)
    assert (found.max_num_batched_tokens.value, found.max_num_batched_tokens.provenance) == (100, "given")
    assert (found.max_num_seqs.value, found.max_num_seqs.provenance) == (7, "given")


def test_fewer_tokens_mean_fewer_sequences() -> None:
    # vLLM 0.22.1 on an H200 with --max-num-batched-tokens 512
    found = scheduler_defaults("0.22.1", total_bytes=140 * GIB, card="H200", max_num_batched_tokens=512)
    assert found.max_num_seqs.value == 512


def test_an_unchunked_prefill_takes_the_whole_length() -> None:
    assert scheduler_defaults("0.17.1", total_bytes=None, max_model_len=9000, chunked_prefill=False).max_num_batched_tokens.value == 9000  # fmt: skip


@given(st.sampled_from(KNOWN), st.floats(1e9, 4e11), st.integers(1, 1 << 20), st.sampled_from(["V0", "V1"]))
def test_there_is_always_an_answer(version: str, total: float, length: int, engine: str) -> None:
    if has_engine(version, engine):
        found = scheduler_defaults(version, total_bytes=total, max_model_len=length, engine=engine)
        assert found.max_num_batched_tokens.value >= 1
        assert found.max_num_seqs.value >= 1
