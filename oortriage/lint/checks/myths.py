"""LT5xx: names that articles hand on and that no software reads, each with what is true."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from oortriage.lint.checks._interface import Case, Check, Hit


class Myth(msgspec.Struct, frozen=True):
    """A variable that nothing reads: what it is said to do, and the truth."""

    code: str
    said: str
    truth: str
    source: str


_ENVS = "in vllm/envs.py of no release from 0.5.4 to 0.33.0"
_CUDA = "docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html does not list it"

VARIABLES = {
    "CUDA_DISABLE_DEPRECATED_PTX": Myth(
        "LT501", "to switch CUDA graphs off, against fragmentation",
        "CUDA has no such variable. --enforce-eager switches CUDA graphs off; they take memory outside the KV cache, "
        "but "
        "fragment nothing. CUDA_DISABLE_PTX_JIT is real and does something else", _CUDA,
    ),
    "VLLM_PROFILE_MEMORY": Myth(
        "LT502", "to switch a memory profiler on",
        "vLLM has no such variable. VLLM_LOGGING_LEVEL=DEBUG prints what the start-up measured (0.9.2 to 0.25.1); "
        "VLLM_TORCH_PROFILER_DIR with VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY=1 traces allocations (0.10.1 to "
        "0.15.1), "
        "later --profiler-config", _ENVS,
    ),
    "NV_GPU_NVLINK_ENABLE": Myth(
        "LT503", "to let GPUs use NVLink",
        "nothing reads it; NVLink needs no variable. `nvidia-smi topo -p2p r` shows what the driver allows, and "
        "NCCL_P2P_DISABLE=1 is the switch that is real", _CUDA,
    ),
    "VLLM_DEBUG_MEMORY": Myth(
        "LT504", "to print memory", "vLLM has no such variable; VLLM_LOGGING_LEVEL=DEBUG prints what the start-up "
                                    "measured",
        _ENVS,
    ),
    "VLLM_STANDBY_MEM": Myth(
        "LT505", "to keep memory in reserve",
        "vLLM has no such variable; what --gpu-memory-utilization leaves of the card is the reserve", _ENVS,
    ),
    "VLLM_METRICS_LEVEL": Myth(
        "LT506", "to choose the metrics", "vLLM has no such variable; /metrics is always there, unless "
                                          "--disable-log-stats",
        _ENVS,
    ),
    "VLLM_LOG_LEVEL": Myth("LT507", "to set the log level", "the variable is VLLM_LOGGING_LEVEL", _ENVS),
}  # fmt: skip


def _of(name: str) -> Check:
    myth = VARIABLES[name]

    def run(case: Case) -> Iterator[Hit]:
        setting = case.settings.get(name)
        if setting is not None:
            yield Hit(name, f"does nothing: {myth.truth}", setting.line)

    return Check(
        myth.code, "warning", f"`{name}` is read by nothing", f"It is said {myth.said}. The truth: {myth.truth}.",
        myth.source, run,
    )  # fmt: skip


def _mps(case: Case) -> Iterator[Hit]:
    setting = case.settings.get("CUDA_MPS_PIPE_DIRECTORY")
    if setting is not None and "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" not in case.settings:
        text = (
            "MPS lets processes share a card and caps no memory; the cap is CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, and "
            "vLLM's own is --gpu-memory-utilization of each instance"
        )
        yield Hit(setting.name, text, setting.line)


def _malloc_async(case: Case) -> Iterator[Hit]:
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        setting = case.settings.get(name)
        if setting is not None and "backend:cudaMallocAsync" in setting.value.replace(" ", ""):
            text = (
                "changes PyTorch's allocator; vLLM's KV cache is one tensor a layer, allocated once at the start, so "
                "that this neither fragments nor mends it"
            )
            yield Hit(f"{name}={setting.value}", text, setting.line)


CHECKS = (
    *(_of(name) for name in VARIABLES),
    Check(
        "LT508",
        "info",
        "MPS is no limit of memory",
        "`CUDA_MPS_PIPE_DIRECTORY` says where the MPS daemon listens. It isolates the memory of no instance.",
        "docs.nvidia.com/deploy/mps, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        _mps,
    ),
    Check(
        "LT509",
        "info",
        "The KV cache is not allocated page by page",
        "A KV page is a slice of a tensor that vLLM allocates at the start; alignment or the allocator's backend has "
        "no part in it.",
        "vLLM 0.6.3.post1 worker/cache_engine.py:67-86",
        _malloc_async,
    ),
)
