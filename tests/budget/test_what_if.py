"""What-ifs: the axes multiply, what a release refuses is named, and a log without a config gives estimates."""

from __future__ import annotations

import pytest

from oortriage.budget.figure import Figure
from oortriage.budget.what_if import Axes, Row, by_tokens, refusal, what_if
from oortriage.errors import UsageError
from tests.budget._logs import available, banner, budget, pool_v1

GIB = 1 << 30
NOW = Row(0.0, 8192, 16, "auto")


@pytest.mark.parametrize(
    ("version", "block", "kv_dtype", "word"),
    [
        ("0.6.3", 64, "auto", "--block-size 64: 0.6.3 takes 8, 16, 32"),
        ("0.6.4.post1", 64, "auto", ""),
        ("0.11.0", 256, "auto", "--block-size 256"),
        ("0.17.1", 256, "auto", ""),
        ("0.17.1", 48, "auto", "--block-size 48"),
        ("0.18.0", 48, "auto", ""),
        ("0.18.0", 0, "auto", "--block-size 0"),
        ("0.10.0", 16, "bfloat16", "--kv-cache-dtype bfloat16"),
        ("0.11.0", 16, "bfloat16", ""),
        ("0.19.1", 16, "nvfp4", "--kv-cache-dtype nvfp4"),
        ("0.20.0", 16, "nvfp4", ""),
        ("", 7, "nonsense", ""),
    ],
)
def test_a_release_refuses_what_it_does_not_take(version: str, block: int, kv_dtype: str, word: str) -> None:
    said = refusal(version, 0.9, 8192, block, kv_dtype)
    assert said.startswith(word)
    assert bool(said) is bool(word)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan")])
def test_shares_lie_above_0_and_at_most_1(share: float) -> None:
    assert "--gpu-memory-utilization" in refusal("0.17.1", share, 8192, 16, "auto")


def test_without_a_config_a_token_s_bytes_are_the_log_s() -> None:
    found = budget(banner("0.17.1") + available("5.0") + pool_v1(40960, 8192, 5.0))
    hold = by_tokens(found)
    assert hold is not None
    rows = what_if(
        "0.17.1", NOW, Axes(max_model_len=(4096, 65536), kv_dtype=("auto", "fp8")),
        found.figures["kv_available_bytes"], None, hold,
    )  # fmt: skip
    tokens = {(one.max_model_len, one.kv_dtype): one.kv_tokens.value for one in rows if one.kv_tokens}
    assert tokens[4096, "auto"] == pytest.approx(40960, abs=16)
    assert tokens[4096, "fp8"] == pytest.approx(81920, abs=32)
    assert {(one.max_model_len, one.kv_dtype): one.starts for one in rows} == {
        (4096, "auto"): True, (4096, "fp8"): True, (65536, "auto"): False, (65536, "fp8"): True,
    }  # fmt: skip
    assert all(one.kv_tokens.provenance == "estimated" for one in rows if one.kv_tokens)


def test_a_share_cannot_be_moved_without_a_card() -> None:
    found = budget(available("5.0") + pool_v1(40960, 8192, 5.0))
    hold = by_tokens(found)
    assert hold is not None
    with pytest.raises(UsageError, match="card"):
        what_if("0.17.1", NOW, Axes(utilization=(0.8,)), Figure(GIB, "bytes", "measured"), None, hold)
    with pytest.raises(UsageError, match="combinations"):
        what_if("0.17.1", NOW, Axes(max_model_len=tuple(range(1, 500))), Figure(GIB, "bytes", "measured"), None, hold)
    assert by_tokens(budget("nothing")) is None
