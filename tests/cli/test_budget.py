"""``oortriage budget`` end to end: the contract, every format, what it refuses, and hostile configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.budget.configs import DEEPSEEK_V3, GEMMA_3_4B, LLAMA_3_8B
from tests.cli.conftest import Run, complained

CONTRACT = ("--vllm", "0.17.1", "--dtype", "bfloat16", "--kv-memory", "5GiB", "--block-size", "16")


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    folder = tmp_path / "Meta-Llama-3-8B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_3_8B))
    return folder


def test_the_contract(run: Run, llama: Path) -> None:
    arguments = ("budget", llama / "config.json", *CONTRACT, "--max-model-len", "8192", "--tp", "1", "--format", "json")
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    expected = {
        "kv_bytes_per_token": (131072, "bytes"), "num_blocks": (2560, "blocks"), "kv_tokens": (40960, "tokens"),
        "max_concurrency": (5.0, "requests"),
    }  # fmt: skip
    for name, (value, unit) in expected.items():
        assert (found[name]["value"], found[name]["unit"], found[name]["provenance"]) == (value, unit, "derived")
        assert found[name]["how"]
    assert found["largest_max_model_len"]["value"] == 8192
    assert (found["schema_version"], found["model"], found["verdict"]) == (1, "Meta-Llama-3-8B", "starts")
    schema = json.loads(run("schema", "budget").stdout)
    jsonschema.validate(found, schema)


def test_text_says_no_more_than_json(run: Run, llama: Path) -> None:
    text = run("budget", llama, *CONTRACT)
    assert (text.returncode, text.stderr) == (0, "")
    assert text.stdout.startswith("The engine starts: one request of 8,192 tokens takes 20.0% of the pool.\n")
    for part in ("2,560 blocks", "40,960 tokens", "5.00x", "131,072 B", "vLLM 0.17.1", "TP 1"):
        assert part in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 80


def test_a_hybrid_model_shows_its_groups_and_the_trap(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(GEMMA_3_4B))
    common = ("--dtype", "float32", "--tp", "2", "--max-model-len", "32768", "--max-num-batched-tokens", "2048")
    done = run("budget", tmp_path, "--vllm", "0.17.1", "--kv-memory", "750MiB", *common)
    assert done.returncode == 1
    assert done.stdout.startswith("The engine starts, but a request of 32,768 tokens cannot be served.\n")
    assert "trap: the engine starts, but one request of 32,768 tokens takes up to 3,206 blocks" in " ".join(
        done.stdout.split()
    )
    assert "window 1,024: pages of 65,536 bytes" in " ".join(done.stdout.split())
    refused = run("budget", tmp_path, "--vllm", "0.19.1", "--kv-memory", "750MiB", *common, "-f", "json")
    assert (refused.returncode, json.loads(refused.stdout)["verdict"]) == (1, "refused")


def test_a_card_gives_the_whole_bill(run: Run, llama: Path) -> None:
    done = run("budget", llama, "--gpu", "L4", "--vllm", "0.17.1", "--tp", "2", "-f", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    memory = found["memory"]
    for name in ("total", "requested", "weights", "activation", "non_torch", "graphs", "available", "outside"):
        assert memory[name]["unit"] == "bytes"
    assert not memory.get("graphs_charged", False)
    assert found["kv_memory"] == memory["available"]
    assert 0 < found["num_blocks"]["low"] < found["num_blocks"]["value"] < found["num_blocks"]["high"]
    assert found["num_blocks"]["provenance"] == "estimated"
    text = run("budget", llama, "--gpu", "L4", "--vllm", "0.17.1", "--tp", "2").stdout
    for title in ("card", "weights", "profile peak", "CUDA graphs", "KV blocks", "KV tokens", "concurrency"):
        assert f"\n{title}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_figures_of_a_log_take_the_place_of_estimates(run: Run, llama: Path) -> None:
    """vLLM 0.17.1 takes total x 0.9, rounded up, less what was printed: nothing is left to guess."""
    told = ("--gpu-memory", "22GiB", "--weights", "15GiB", "--activation", "1GiB", "--non-torch", "0.5GiB")
    done = run("budget", llama, "--vllm", "0.17.1", *told, "--enforce-eager", "-f", "json")
    found = json.loads(done.stdout)
    left = -(-22 * (1 << 30) * 9 // 10) - int(16.5 * (1 << 30))
    assert abs(found["kv_memory"]["value"] - left) <= 1
    assert found["num_blocks"]["value"] == left // (2 << 20)
    assert {found[name]["provenance"] for name in ("num_blocks", "kv_tokens", "max_concurrency")} == {"derived"}


def test_a_card_that_is_too_small_and_one_that_is_taken(run: Run, llama: Path) -> None:
    small = run("budget", llama, "--gpu", "T4", "--vllm", "0.22.1")
    assert small.returncode == 1
    assert small.stdout.startswith("The engine does not start: nothing is left for the KV cache.\n")
    assert "auto falls back to float16" in " ".join(small.stdout.split())
    taken = run("budget", llama, "--gpu", "A100 80GB", "--vllm", "0.17.1", "--free-memory", "40GiB")
    assert taken.returncode == 1
    assert " ".join(taken.stdout.split()).startswith("Free memory on device cuda:0 (40.0/79.15 GiB) on startup is less")


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (("--gpu", "Voodoo 2"), "Voodoo 2"),
        (("--gpu", "T4", "--dtype", "bfloat16"), "refuses it below compute capability 8.0"),
    ],
)
def test_cards_that_do_not_go(run: Run, llama: Path, more: tuple[str, ...], part: str) -> None:
    assert part in complained(run("budget", llama, "--vllm", "0.17.1", *more), 2)


def test_what_cannot_be_told_ends_with_three(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**DEEPSEEK_V3, "compress_ratios": [4, 128]}))
    done = run("budget", tmp_path, "--vllm", "0.33.0", "--kv-memory", "5GiB")
    assert "compress_ratios" in complained(done, 3)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (("--kv-memory", "5GB"), "write 5GiB (binary) or 5g (decimal)"),
        (("--kv-memory", ""), "--kv-memory 5GiB"),
        (("--max-model-len", "-1"), "max_model_len -1: not a count"),
        (("--max-num-batched-tokens", "0"), "max_num_batched_tokens 0: not a count"),
    ],
)
def test_every_mistake_is_one_line_and_two(run: Run, llama: Path, more: tuple[str, ...], part: str) -> None:
    done = run("budget", llama, *CONTRACT, *more)
    assert part in complained(done, 2)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000, b'{"num_hidden_layers": 1e300}',
        b'{"num_hidden_layers": 1, "num_attention_heads": 8, "hidden_size": 64, "layer_types": ["\\u001b]0;x\\u0007"]}',
    ],
)  # fmt: skip
def test_what_is_no_models_config(run: Run, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    told = complained(run("budget", path, *CONTRACT), 2)
    assert "config.json" in told
    assert "\x1b" not in told


def test_names_from_a_config_cannot_act(run: Run, tmp_path: Path) -> None:
    hostile: dict[str, Any] = {**LLAMA_3_8B, "architectures": ["\x1b[31mRed|`x`@you"]}
    (tmp_path / "config.json").write_text(json.dumps(hostile))
    markdown = run("budget", tmp_path, *CONTRACT, "-f", "markdown").stdout
    assert "@you" not in markdown
    assert "\\`x\\`" in markdown


def test_a_config_that_is_not_there(run: Run, tmp_path: Path) -> None:
    assert "cannot be read" in complained(run("budget", tmp_path, *CONTRACT), 2)
