"""Write a synthetic serving log of any size: every line freshly made, near misses, one failure at the end.

Usage: ``python benchmarks/make_log.py OUT MEGABYTES [SEED]``.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

_HEAD = "(EngineCore pid=412) ERROR 11-29 20:17:14 [core.py:1167] "
FAILURE = (
    f"{_HEAD}EngineCore encountered a fatal error.\n"
    f"{_HEAD}Traceback (most recent call last):\n"
    f'{_HEAD}  File "vllm/v1/engine/core.py", line 1158, in run_engine_core\n'
    f"{_HEAD}    engine_core.run_busy_loop()\n"
    f"{_HEAD}triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 81920, "
    "Hardware limit: 65536. Reducing block sizes or `num_stages` may help.\n"
    "(APIServer pid=9) RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {}\n"
)
_TEXT = """attention budget cache chunk decode engine failed fetch graph head kernel layer limit memory_config
model token output page prefill queue rank request resource sample shard shared step stream tensor usage worker"""
_WORDS = tuple(_TEXT.split())


def line(rng: random.Random, number: int) -> str:
    """Make one line of one of seven kinds that real logs hold."""
    minute, second = number // 60 % 60, number % 60
    clock = f"11-29 {number // 3600 % 24:02d}:{minute:02d}:{second:02d}"
    kind = rng.random()
    words = " ".join(rng.choices(_WORDS, k=rng.randint(4, 14)))
    if kind < 0.3:
        return (
            f"(APIServer pid=9) INFO {clock} [loggers.py:{rng.randint(10, 400)}] Engine 000: Avg prompt throughput: "
            f"{rng.random() * 900:.1f} tokens/s, Avg generation throughput: {rng.random() * 400:.1f} tokens/s, "
            f"Running: {rng.randint(0, 99)} reqs, Waiting: {rng.randint(0, 9)} reqs, GPU KV cache usage: "
            f"{rng.random() * 100:.1f}%, Prefix cache hit rate: {rng.random() * 100:.1f}%"
        )
    if kind < 0.5:
        address = f"10.0.{rng.randint(0, 255)}.{rng.randint(0, 255)}:{rng.randint(1024, 65535)}"
        return f'INFO:     {address} - "POST /v1/chat HTTP/1.1" 200'
    if kind < 0.7:
        place = f"scheduler.py:{rng.randint(10, 900)}"
        return f"(EngineCore pid=412) DEBUG {clock} [{place}] {words} {rng.getrandbits(64):016x}"
    if kind < 0.8:
        return f"node-{rng.randint(0, 9)}:412:{rng.randint(400, 499)} [{rng.randint(0, 7)}] NCCL INFO {words}"
    if kind < 0.9:
        stamp = f"{number}.{rng.randint(0, 999999):06d}"
        return f"Nov 29 20:{minute:02d}:{second:02d} host kernel: [{stamp}] {words}"
    if kind < 0.97:
        return f"prompt: {' '.join(rng.choices(_WORDS, k=rng.randint(20, 60)))}"
    bar = rng.randint(1, 99)
    return f"\rLoading shards: {bar}%|{'█' * (bar // 10)}| {bar}/100 [00:{bar:02d}<00:09, 1.2it/s]"


def write(path: Path, size: int, seed: int = 1) -> None:
    """Write about ``size`` bytes, the failure last."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as sink:
        written = number = 0
        while written < size:
            block = "".join(line(rng, number + step) + "\n" for step in range(min(2000, size // 100 + 1)))
            number += 2000
            written += len(block.encode())
            sink.write(block)
        sink.write(FAILURE)


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(float(sys.argv[2]) * 1e6), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
