"""``oortriage fit`` end to end: rows by the contract, two real releases, hostile configs, and every mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, complained
from tests.cli.replaying import REFERENCE, cache, replay, table, vllm

__all__ = ["cache", "replay", "vllm"]  # fixtures

GEMMA = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "head_dim": 256, "num_attention_heads": 8,
    "num_key_value_heads": 4, "num_hidden_layers": 6, "sliding_window": 1024, "sliding_window_pattern": 6,
    "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(GEMMA))
    return folder


def figures(found: Any) -> list[tuple[Any, ...]]:
    return [
        (one["gpu"], one["layer_kind"], one["dtype"], one["required_bytes"], one["limit_bytes"], one["fits"])
        for one in found["rows"]
    ]


def test_rows_by_the_contract(replay: Run, model: Path) -> None:
    arguments = ("fit", "--model", model, *REFERENCE, "--gpu", "T4", "--dtype", "float32,bfloat16")
    found = table(replay(*arguments, "--format", "json"), 1)
    rows = figures(found)
    assert ("T4", "full attention", "float32", 81920, 65536, False) in rows
    assert len(rows) == 4
    assert {(one[0], one[4]) for one in rows} == {("T4", 65536)}
    assert [one["ledger"] is not None for one in found["rows"]] == [one[5] is False for one in rows]
    text = replay(*arguments)
    assert (text.returncode, text.stderr) == (1, "")
    assert "81,920" in text.stdout
    assert "\nT4, bfloat16: this card has no bfloat16; serving engines refuse it\n" in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80


def test_all_fit_is_nought_and_the_configs_own_type_is_the_default(replay: Run, model: Path, tmp_path: Path) -> None:
    done = replay(
        "fit",
        "--model",
        model / "config.json",
        *REFERENCE,
        "--gpu",
        "RTX 4090",
        "-f",
        "json",
        "-o",
        tmp_path / "fit.json",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    found = json.loads((tmp_path / "fit.json").read_text(encoding="utf-8"))
    assert {one["dtype"] for one in found["rows"]} == {"bfloat16"}


def test_two_releases_of_vllm(vllm: Run, tmp_path: Path) -> None:
    """The same layer in two releases, each by its own source."""
    (tmp_path / "config.json").write_text(json.dumps({**GEMMA, "sliding_window": None}))
    seen = {}
    for release in ("0.9.2", "0.17.1"):
        done = vllm(
            "fit", "--model", tmp_path, "--gpu", "T4", "--dtype", "float32", "--vllm", release, "--format", "json"
        )
        found = json.loads(done.stdout)
        assert {one["version"] for one in found["rows"]} == {release}
        assert done.returncode == (0 if all(one["fits"] for one in found["rows"]) else 1)
        seen[release] = {one["layer_kind"]: one["required_bytes"] for one in found["rows"]}
    assert seen["0.17.1"]["full attention"] == 81920
    assert set(seen["0.9.2"]) == set(seen["0.17.1"])
    assert all(one is not None for one in seen["0.9.2"].values())


def test_a_config_that_wants_to_act_on_the_reader(replay: Run, tmp_path: Path) -> None:
    whole = {**GEMMA, "architectures": ["\x1b[31m**bold** <img src=x> @octocat | x"]}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    arguments = ("fit", "--model", tmp_path, *REFERENCE, "--gpu", "T4", "--dtype", "float32")
    text = replay(*arguments).stdout
    assert text.startswith("\\x1b[31m**bold** <img src=x> @octocat | x: reference.attention")
    page = replay(*arguments, "--format", "markdown").stdout
    assert page.startswith("\\\\x1b\\[31m\\*\\*bold\\*\\* \\<img src=x\\> \\@\u200boctocat \\| x: ")
    assert "\x1b" not in text + page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu", " , "], "which card? --gpu T4,A10"),
        (["--gpu", "T4,RTX 9999 Super"], "unknown GPU"),
        (["--gpu", "T4", "--dtype", "float9"], "--dtype float9: no element type"),
        (["--gpu", "T4", "--kernel", "vllm.fused_moe"], "vllm.fused_moe is no attention"),
        (["--gpu", "T4", *REFERENCE, "--all-versions"], "--all-versions: reference.attention belongs to no library"),
        (["--gpu", "T4", "--model", "none.json"], "none.json: cannot be read: No such file or directory"),
    ],
    ids=["no card", "card", "type", "kernel", "no library", "no config"],
)
def test_mistakes(replay: Run, model: Path, arguments: list[str], words: str) -> None:
    given = arguments if "--model" in arguments else ["--model", str(model), *arguments]
    assert words in complained(replay("fit", *given))


def test_a_config_without_a_type_asks_for_it(replay: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**GEMMA, "torch_dtype": None}))
    said = complained(replay("fit", "--model", tmp_path, "--gpu", "T4", *REFERENCE))
    assert said.endswith("names no type: say --dtype float16,float32")
