"""Run as a program in vLLM's own environment: starts an engine, sends two prompts, writes what came back.

It stands alone: that environment need have nothing of oortriage but the folder that the check lays out.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Do the job whose file is named on the command line; its result is written after every stage.

    An exception goes on to standard error, as it would in anybody's script: the log is the proof.
    """
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    result: dict[str, Any] = {"stage": "import", "pid": os.getpid(), "seconds": {}}
    begin = time.perf_counter()

    def reached(stage: str) -> None:
        nonlocal begin
        now = time.perf_counter()
        result["seconds"][result["stage"]] = round(now - begin, 3)
        result["stage"], begin = stage, now
        Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")

    from vllm import LLM, SamplingParams

    _write_weights(job)
    reached("start")
    engine: Any = LLM(**_arguments(job))
    reached("request")
    wish = SamplingParams(max_tokens=job["tokens"], temperature=0.0, ignore_eos=True, detokenize=False)
    prompts: Any = [{"prompt_token_ids": _prompt(length, job["vocabulary"])} for length in job["prompts"]]
    answers = engine.generate(prompts, wish, use_tqdm=False)
    result["tokens"] = [list(map(int, answer.outputs[0].token_ids)) for answer in answers]
    reached("done")
    print(f"generated {[len(one) for one in result['tokens']]} tokens", flush=True)


def _write_weights(job: dict[str, Any]) -> None:
    """Write a seeded random checkpoint; with vLLM's own dummy weights every token comes out the same."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)
    made = {}
    for name, shape in job["weights"].items():
        # Norms multiply by one plus the weight; all else keeps the size of what passes through it. The embedding,
        # which is the output's too, is small, or every token would be the one before it again.
        scale = shape[-1] ** -0.5 * (0.1 if "embed" in name else 1.0) if len(shape) == 2 else 0.0
        made[name] = torch.randn(shape, generator=generator) * scale
    save_file(made, str(Path(job["model"]) / "model.safetensors"), metadata={"format": "pt"})


def _prompt(length: int, vocabulary: int) -> list[int]:
    """Make a prompt that is the same in every run, with no token twice in a row."""
    return [3 + (7 * index + index * index) % (vocabulary - 3) for index in range(length)]


def _arguments(job: dict[str, Any]) -> dict[str, Any]:
    """List the engine's arguments, as far as this release has them."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.platforms import current_platform

    total = int(current_platform.get_device_total_memory())
    known = {one.name for one in dataclasses.fields(EngineArgs)}
    if "attention_backend" not in known:  # before 0.13 a variable chose it
        os.environ["VLLM_ATTENTION_BACKEND"] = "TRITON_ATTN"
    wanted = {
        "model": job["model"],
        "dtype": "float32",
        "load_format": "safetensors",
        "skip_tokenizer_init": True,
        "enforce_eager": True,
        "max_model_len": 4096,
        "max_num_batched_tokens": 4096,
        "max_num_seqs": 8,
        "seed": 0,
        "gpu_memory_utilization": min(0.9, job["memory_bytes"] / total),
        # Told, not measured: what other processes free meanwhile would end the measuring.
        "kv_cache_memory_bytes": job["kv_cache_bytes"],
        "attention_backend": "TRITON_ATTN",
        # vLLM's own operators would need all its binaries; attention is a Triton kernel in any case.
        "compilation_config": {"custom_ops": ["none"]},
        "distributed_executor_backend": job["executor"] or None,
    }
    return {name: value for name, value in wanted.items() if name in known and value is not None}


if __name__ == "__main__":  # an engine core that is spawned imports this file again
    main()
