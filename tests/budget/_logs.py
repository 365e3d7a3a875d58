"""vLLM's memory lines by release, written with any figures, and what a log of them gives."""

from __future__ import annotations

from oortriage.api import default_analyzer
from oortriage.budget.from_log import LogFigures, read_figures
from oortriage.budget.log_budget import LogBudget
from oortriage.budget.rebuild import rebuild
from oortriage.evidence.event import find_events
from oortriage.evidence.matcher import Matcher
from oortriage.intake.line import Piece
from oortriage.intake.log import build_log

GIB = 1024**3


def figures(text: str, matcher: Matcher | None = None) -> LogFigures:
    pieces = (Piece(number, 0, line) for number, line in enumerate(text.split("\n"), 1))
    log = build_log("log.txt", pieces, complete=True, notes=[])
    return read_figures(find_events(log, matcher or default_analyzer().matcher))


def budget(text: str) -> LogBudget:
    return rebuild(figures(text))


def banner(version: str, length: int = 8192, engine: str = "V1", **config: object) -> str:
    more = "".join(f", {name}={value}" for name, value in config.items())
    kind = " V1" if engine == "V1" else ""
    return (
        f"INFO 03-01 10:00:00 [core.py:76] Initializing a{kind} LLM engine (v{version}) with config: model='org/m', "
        f"dtype=torch.bfloat16, max_seq_len={length}, download_dir=None{more}\n"
    )


def profile_v0(total: float, share: float, weights: float, other: float, peak: float, left: float) -> str:
    """0.6.6 to 0.10.2, engine V0."""
    return (
        f"INFO 02-26 09:54:05 worker.py:267] the current vLLM instance can use total_gpu_memory ({total:.2f}GiB) x "
        f"gpu_memory_utilization ({share:.2f}) = {total * share:.2f}GiB\n"
        f"INFO 02-26 09:54:05 worker.py:267] model weights take {weights:.2f}GiB; non_torch_memory takes {other:.2f}GiB; "
        f"PyTorch activation peak memory takes {peak:.2f}GiB; the rest of the memory reserved for KV Cache is {left:.2f}GiB.\n"
    )


def blocks_v0(blocks: int, cpu: int, word: str = "cuda") -> str:
    return f"INFO 02-26 09:54:05 executor_base.py:111] # {word} blocks: {blocks}, # CPU blocks: {cpu}\n"


def available(gib: object, who: str = "EngineCore pid=7", line: str = "gpu_worker.py:276") -> str:
    return f"({who}) INFO 08-20 18:04:22 [{line}] Available KV cache memory: {gib} GiB\n"


def pool_v1(tokens: int, length: int, concurrency: float) -> str:
    head = "(EngineCore pid=7) INFO 08-20 18:04:22"
    return (
        f"{head} [kv_cache_utils.py:849] GPU KV cache size: {tokens:,} tokens\n"
        f"{head} [kv_cache_utils.py:853] Maximum concurrency for {length:,} tokens per request: {concurrency:.2f}x\n"
    )


def refused_v1(length: int, needed: str, left: str, estimate: int | None = None) -> str:
    guess = f"Based on the available memory, the estimated maximum model length is {estimate}. " if estimate else ""
    return (
        f"ValueError: To serve at least one request with the models's max seq len ({length}), ({needed} GiB KV cache is "
        f"needed, which is larger than the available KV cache memory ({left} GiB). {guess}Try increasing "
        "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
    )


def gate(free: float, total: float, share: float) -> str:
    return (
        f"ValueError: Free memory on device cuda:0 ({free}/{total} GiB) on startup is less than desired GPU memory "
        f"utilization ({share}, {total * share:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory used by "
        "other processes.\n"
    )


def usage(percent: float, running: int) -> str:
    return (
        "INFO 06-16 02:40:01 [loggers.py:116] Engine 000: Avg prompt throughput: 24.1 tokens/s, Avg generation throughput: "
        f"18.0 tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: {percent:.1f}%, Prefix cache hit "
        "rate: 22.0%\n"
    )
