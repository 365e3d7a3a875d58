"""Run by ``kv_starts.py`` in vLLM's own environment: starts one engine and notes what it measured, in bytes.

It stands alone. The log is the evidence; the notes only add the bytes that the log rounds to 0.01 GiB.
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
    """Do the job named on the command line; the notes are written after every step."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    notes: dict[str, Any] = {"stage": "import", "steps": [], "seconds": {}}
    begin = time.perf_counter()

    def note(**found: Any) -> None:
        notes.update(found)
        spare = Path(job["notes"] + ".new")
        spare.write_text(json.dumps(notes), encoding="utf-8")
        spare.replace(job["notes"])

    def reached(stage: str) -> None:
        nonlocal begin
        now = time.perf_counter()
        notes["seconds"][notes["stage"]] = round(now - begin, 2)
        begin = now
        note(stage=stage)

    from vllm import LLM

    reached("waiting")
    _wait(Path(job["go"]))
    reached("start")
    _watch(note, notes)
    engine: Any = LLM(**_arguments(job))
    reached("done")
    _note_engine(engine, note)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # taking an engine down takes seconds, and its memory is free as soon as the process is gone


def _wait(go: Path) -> None:
    """Wait for the one before to be done with the card; importing needs no card."""
    parent, end = os.getppid(), time.monotonic() + 900
    while not go.exists():
        if os.getppid() != parent or time.monotonic() > end:
            os._exit(3)
        time.sleep(0.05)


def _arguments(job: dict[str, Any]) -> dict[str, Any]:
    from vllm.engine.arg_utils import EngineArgs

    known = {one.name for one in dataclasses.fields(EngineArgs)}
    return {name: value for name, value in job["arguments"].items() if name in known}


def _watch(note: Any, notes: dict[str, Any]) -> None:
    """Note the bytes around the steps of the profile run; what vLLM does is left as it is."""
    try:
        import torch
        from vllm.v1.worker.gpu_model_runner import GPUModelRunner
        from vllm.v1.worker.gpu_worker import Worker
    except ImportError as problem:
        note(watch=repr(problem))
        return

    def stepwise(owner: Any, name: str) -> None:
        inner = getattr(owner, name, None)
        if inner is None:
            return

        def outer(self: Any, *args: Any, **kwargs: Any) -> Any:
            before = _torch_bytes(torch)
            try:
                return inner(self, *args, **kwargs)
            finally:
                notes["steps"].append({"step": name, "before": before, "after": _torch_bytes(torch)})
                note()

        setattr(owner, name, outer)

    for name in ("load_model", "profile_run", "_dummy_run", "_dummy_sampler_run"):
        stepwise(GPUModelRunner, name)
    measure = Worker.determine_available_memory

    def measured(self: Any) -> int:
        available = 0
        try:
            available = int(measure(self))
        finally:
            first, runner = self.init_snapshot, self.model_runner
            note(
                worker={
                    "total": first.total_memory,
                    "free_at_start": first.free_memory,
                    "requested": int(self.requested_memory),
                    "available": available,
                    "weights": int(runner.model_memory_usage),
                    "activation": int(getattr(self, "peak_activation_memory", 0)),
                    "non_torch": int(getattr(self, "non_torch_memory", 0)),
                    "max_num_batched_tokens": runner.max_num_tokens,
                    "max_num_seqs": runner.max_num_reqs,
                }
            )
        return available

    Worker.determine_available_memory = measured
    note(
        environment={
            "card": torch.cuda.get_device_name(0) if torch.cuda.is_available() else "",
            "torch": torch.__version__,
        }
    )


def _torch_bytes(torch: Any) -> dict[str, int]:
    if not torch.cuda.is_available():
        return {}
    stats = torch.cuda.memory_stats()
    names = {"allocated": "allocated_bytes.all.current", "peak": "allocated_bytes.all.peak"}
    return {name: stats.get(key, 0) for name, key in names.items()} | {"reserved": torch.cuda.memory_reserved()}


def _note_engine(engine: Any, note: Any) -> None:
    """Note how many blocks there are, and torch's total with the KV cache in it; a release may hide them."""
    import torch
    import vllm

    try:
        cache = engine.llm_engine.vllm_config.cache_config
        note(
            blocks=cache.num_gpu_blocks,
            block_size=cache.block_size,
            vllm=vllm.__version__,
            torch=_torch_bytes(torch),
            free_after=torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else None,
        )
    except AttributeError as problem:
        note(engine=repr(problem))


if __name__ == "__main__":
    main()
