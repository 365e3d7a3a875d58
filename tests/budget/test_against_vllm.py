"""The rules against vLLM's own code: every release's arithmetic, run from its wheel, on made-up models.

Only the modules that group layers and count blocks are vLLM's; see ``vllm_oracle``. What a layer's page is comes from
the code under test, and is checked in ``test_layout`` and against printed figures in ``test_worked_examples``.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oortriage.budget import versions
from oortriage.budget.kv import KvLayout, kv_layout, pool
from oortriage.budget.model import LayerShape, Model, read_model
from oortriage.budget.versions import release
from oortriage.errors import UsageError
from oortriage.kernels.source._interface import SourceError
from oortriage.kernels.source.wheel import WheelSource, wheel_spec
from tests.budget.configs import DEEPSEEK_V3, GPT_OSS_20B, LLAMA_3_8B, QWEN3_NEXT
from tests.budget.vllm_oracle import REAL

ORACLE = Path(__file__).parent / "vllm_oracle.py"
GIB = 1 << 30
CASES = 60
#: Releases at which a rule changes, and the newest.
VERSIONS = (
    "0.7.3", "0.8.5", "0.9.2", "0.10.2", "0.11.0", "0.12.0", "0.14.1", "0.17.1", "0.18.0", "0.19.1", "0.22.1", "0.28.0",
    "0.30.0", "0.33.0",
)  # fmt: skip
_TOKENS = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x")
_NEEDED = re.compile(r"\(([\d.]+) Gi?B KV cache is needed")


def files_of(version: str) -> Path:
    """Fetch the release's files from its wheel; the folder is the package's parent."""
    source = WheelSource(wheel_spec("vllm", version))
    fetched = [source.fetch(path) for path in (name.replace(".", "/") + ".py" for name in REAL) if source.has(path)]
    return fetched[0].parents[2]  # .../vllm/v1/kv_cache_interface.py


def some_model(chance: random.Random) -> Model:
    """Make a model up: uniform, windows beside full layers in any mixture, MLA, chunks, states, several widths."""
    kind = chance.choice(["llama", "windows", "windows", "windows", "mla", "chunks", "states", "widths", "all windows"])
    depth = chance.randint(1, 48)
    config: dict[str, Any] = {**LLAMA_3_8B, "num_hidden_layers": depth}
    config["num_key_value_heads"] = chance.choice([1, 2, 4, 8, 16, 32])
    config["head_dim"] = chance.choice([64, 128, 256])
    if kind == "windows":
        few = chance.randint(1, depth)
        types = ["sliding_attention"] * (depth - few) + ["full_attention"] * few
        chance.shuffle(types)
        config |= {"sliding_window": chance.choice([128, 512, 1024, 4095]), "layer_types": types}
    elif kind == "all windows":
        config |= {"sliding_window": 4096}
    elif kind == "mla":
        config = {**DEEPSEEK_V3, "num_hidden_layers": depth}
    elif kind == "chunks":
        config |= {"attention_chunk_size": 8192, "no_rope_layers": [chance.randint(0, 1) for _ in range(depth)]}
    elif kind == "states":
        config = {**QWEN3_NEXT, "num_hidden_layers": depth}
    elif kind == "widths":
        wide = {"global_head_dim": chance.choice([256, 512]), "num_global_key_value_heads": 8}
        config = {**GPT_OSS_20B, "num_hidden_layers": 24, "num_key_value_heads": 8, **wide, "head_dim": 128}
    return read_model(config)


def some_case(chance: random.Random, version: str) -> tuple[dict[str, Any], KvLayout | str, dict[str, Any]]:
    """Make one case up: what the oracle is asked, the layout (or why there is none), and what the pool is told."""
    model = some_model(chance)
    pp = chance.choice([1, 1, 1, 2, 3])
    parted = [model.num_layers // pp] * (pp - 1)
    parted.append(model.num_layers - sum(parted))
    if pp > model.num_layers or release(version) < release("0.11.0"):
        pp, parted = 1, [model.num_layers]
    windowed = any(layer.kind == "sliding" for layer in model.layers)
    dcp = 1 if windowed or release(version) < release("0.10.2") else chance.choice([1, 1, 2])
    hybrid = chance.random() < 0.75
    flags: dict[str, Any] = {
        "tp": chance.choice([1, 2, 4]) * dcp,
        "pp": pp,
        "dcp": dcp,
        "hybrid": hybrid,
        "block_size": None if model.mla else chance.choice([None, 16, 32]),
        "chunked_hybrid": True,
        "pp_partition": parted,
        "engine": "V1",
    }
    if model.heads % flags["tp"]:
        flags["tp"] = dcp = flags["dcp"] = 1
    try:
        layout: KvLayout | str = kv_layout(model, version, **flags)
        block_size = layout.block_size if isinstance(layout, KvLayout) else 16
    except UsageError as problem:
        layout, block_size = str(problem), flags["block_size"] or 16
    length = chance.choice([1, 17, 1000, 4096, 8192, 32768, 131072])
    batched, override = chance.choice([512, 2048, 8192]), chance.choice([None, None, None, 3, 4000])
    size = int(chance.choice([-1, 0, 0.01, 0.5, 2, 20, 100]) * GIB * chance.random())
    state = max((group.page.bytes for group in layout.groups), default=0) if isinstance(layout, KvLayout) else 0
    ends = [sum(parted[: rank + 1]) for rank in range(pp)]
    stages = [
        [
            page_of(cache, version, tp=flags["tp"], block_size=block_size, state=state)
            for layer in model.layers[end - count : end]
            for cache in layer.caches()
        ]
        for count, end in zip(parted, ends, strict=True)
    ]
    asked: dict[str, Any] = {
        "stages": stages, "available": [size] * pp, "length": length, "batched": batched, "override": override,
        "state_mode": layout.state_mode if isinstance(layout, KvLayout) else "none",
        "hybrid": hybrid, "dcp": flags["dcp"], "block_size": block_size, "one_size": release(version) < release("0.8.5"),
    }  # fmt: skip
    told = {"max_model_len": length, "max_num_batched_tokens": batched, "blocks_override": override}
    return asked, layout, {"size": size, **told}


def page_of(layer: LayerShape, version: str, *, tp: int, block_size: int, state: int) -> dict[str, Any]:
    """Describe a layer's page to the oracle, in the kinds that the release knows."""
    known = {"sliding": versions.SLIDING_SINCE, "chunked": versions.CHUNKED_SINCE}
    unknown = layer.kind in known and not versions.holds(version, known[layer.kind])
    return {
        "kind": "full" if unknown else layer.kind,
        "block_size": block_size,
        "heads": max(1, layer.kv_heads // tp),
        "head_size": layer.head_size,
        "dtype": "bfloat16",
        "window": layer.window,
        "bytes": state,
    }


def same(theirs: dict[str, Any], layout: KvLayout | str, told: dict[str, Any]) -> str:
    """Compare vLLM's answer and ours; return what differs, empty where nothing does."""
    error, message = theirs.get("error"), theirs.get("message", "")
    refused = message.startswith(("To serve at least one request", "No available memory"))
    if isinstance(layout, str):
        # an order of checks: vLLM may refuse for the memory before it comes to the layers
        return "" if error else f"ours refuses: {layout}"
    ours = pool(layout, told["size"], **{name: told[name] for name in told if name != "size"})
    if error:
        if not refused:
            return f"{error}: {message[:200]}"
        if ours.admitted:
            return f"theirs refuses: {message[:200]}"
        needed = _NEEDED.search(message)
        far = needed and len(layout.stages) == 1 and abs(float(needed[1]) - ours.needed_bytes.value / GIB) > 0.0051
        return f"needed {needed} and {ours.needed_bytes.value / GIB}" if far else ""
    if not ours.admitted:
        return "ours refuses for the memory"
    printed = "\n".join(theirs["printed"])
    tokens = (
        [theirs["tokens"]] if "tokens" in theirs else [int(one.replace(",", "")) for one in _TOKENS.findall(printed)]
    )
    concurrency = (
        [theirs["concurrency"]] if "tokens" in theirs else [float(one) for one in _CONCURRENCY.findall(printed)]
    )
    if theirs["blocks"] != ours.num_blocks.value:
        return f"blocks {theirs['blocks']} and {ours.num_blocks.value}"
    # releases that print one line a worker print the worker's own figure there
    if tokens and ours.kv_tokens.value not in tokens:
        return f"tokens {tokens} and {ours.kv_tokens.value}"
    if concurrency and not any(abs(one - ours.max_concurrency.value) <= 0.0051 for one in concurrency):
        return f"concurrency {concurrency} and {ours.max_concurrency.value}"
    return ""


@pytest.mark.index
@pytest.mark.parametrize("version", VERSIONS)
def test_a_release_counts_as_we_do(version: str) -> None:
    try:
        folder = files_of(version)
    except SourceError as problem:
        pytest.skip(f"the package index cannot be reached: {problem}")
    chance = random.Random(version)
    cases = [some_case(chance, version) for _ in range(CASES)]
    done = subprocess.run(
        [sys.executable, str(ORACLE), str(folder)],
        input=json.dumps([asked for asked, _, _ in cases]),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    wrong = {
        index: (problem, {name: asked[name] for name in asked if name != "stages"}, told)
        for index, (theirs, (asked, layout, told)) in enumerate(zip(answers, cases, strict=True))
        if (problem := same(theirs, layout, told))
    }
    assert not wrong
    assert sum("blocks" in theirs for theirs in answers) > CASES // 4
