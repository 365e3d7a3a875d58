"""The block for an issue report: fields from a list, each of a known shape; nothing else leaves the machine.

What names people, hosts, folders or programs of others is not on the list, so it cannot be forgotten. A value
that does not have its field's shape is left out, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from oortriage.doctor.finding import Examination
from oortriage.doctor.sizes import size
from oortriage.report.escape import code_block
from oortriage.report.redaction.redactor import Redactor

_PUBLIC = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,5}(?:\.?(?:a|b|rc|post|dev)\d{0,9}){0,3}")
#: Local parts of versions that makers give; one's own may name a company.
_LOCAL = re.compile(r"\+(?:cu\d{2,4}|cpu|xpu|rocm\d[\d.]{0,11}|g[0-9a-f]{6,12}|(?:[0-9a-f]{6,12}\.)?nv\d{2}\.\d{1,2})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ./()+-]{0,60}")
_PLAIN = re.compile(r"[A-Za-z0-9_.:,+-]{1,60}")
_ARCHITECTURE = re.compile(r"(?:sm|compute)_\d{2,4}[af]?")
_SUBJECT = re.compile(
    r"GPU \d{1,4}|torch|libcuda|driver|memlock|nofile|peer access|control group|host memory|/dev/shm|/dev/nvidia-uvm"
)
#: Packages whose versions may be named.
_PACKAGES = (
    "vllm", "torch", "triton", "torchvision", "torchaudio", "xformers", "flashinfer-python", "flash-attn", "sglang",
    "sgl-kernel", "transformers", "numpy", "ray", "nvidia-ml-py",
)  # fmt: skip
#: Variables whose values may be shown, when they are plain words or numbers. A list of devices is counted only.
_VARIABLES = (
    "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER", "NCCL_P2P_DISABLE",
    "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_CUMEM_ENABLE", "OMP_NUM_THREADS", "VLLM_USE_V1",
    "VLLM_ATTENTION_BACKEND", "VLLM_WORKER_MULTIPROC_METHOD", "VLLM_LOGGING_LEVEL", "VLLM_SKIP_P2P_CHECK",
    "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "VLLM_USE_V2_MODEL_RUNNER", "TRITON_INTERPRET",
)  # fmt: skip


def issue_block(examination: Examination) -> str:
    """Write the block as Markdown: a fence that may be pasted into an issue."""
    facts = examination.facts
    lines = [
        f"oortriage doctor {_version(examination.oortriage)}",
        *_machine(facts),
        *_software(facts),
        *_host(facts),
    ]
    lines += ["", "findings:"]
    lines += sorted({_finding(one.code, one.severity, one.title, one.subject) for one in examination.findings}) or [
        "  none"
    ]
    missed = sorted({one.check for one in examination.not_checked})
    if missed:
        lines += [f"not checked, all or in part: {', '.join(missed)}"]
    text = Redactor().text("\n".join(line for line in lines if line is not None))
    return code_block(text) + "\n"


def _machine(facts: dict[str, dict[str, Any]]) -> list[str]:
    driver, cards = facts.get("driver", {}), facts.get("cards", {}).get("cards", [])
    lines = [f"place: {_one_of(driver.get('place'), ('machine', 'container', 'wsl2'))}"]
    if not cards:
        lines.append("GPU: none, or it could not be read")
    for one in cards:
        capability = _shaped(re.compile(r"\d{1,2}\.\d"), one.get("capability"))
        lines.append(
            f"GPU {int(one['index'])}: {_shaped(_NAME, one.get('name'))}, capability {capability}, "
            f"{_size(one.get('total_bytes'))}, {_size(one.get('free_bytes'))} free, "
            f"shared memory of a block {_bytes(one.get('shared_memory_per_block_bytes'))}, MIG {_on(one.get('mig'))}"
        )
    ceiling = _version(driver.get("cuda_ceiling"))
    lines.append(f"driver: {_version(driver.get('driver'))}, runs CUDA up to {ceiling}")
    return lines


def _software(facts: dict[str, dict[str, Any]]) -> list[str]:
    runtime, packages = facts.get("runtime", {}), facts.get("packages", {})
    architectures = [one for one in runtime.get("architectures", []) if _ARCHITECTURE.fullmatch(str(one))]
    built = _version(runtime.get("built_for_cuda"))
    versions = packages.get("versions", {})
    listed = [f"{name} {_version(versions[name])}" for name in _PACKAGES if name in versions]
    return [
        f"Python: {_version(packages.get('python'))}",
        f"packages: {', '.join(listed) or 'none of those that matter'}",
        f"torch was built with CUDA {built} for {' '.join(architectures) or 'unknown'}"
        if runtime.get("torch")
        else "torch: none",
    ]


def _host(facts: dict[str, dict[str, Any]]) -> list[str]:
    shm, group, seen = facts.get("shm", {}), facts.get("cgroup", {}), facts.get("visible", {})
    variables = facts.get("variables", {}).get("set", {})
    memory = f"host memory: {_size(group.get('host_total_bytes'))}, limit {_size(group.get('limit_bytes'), 'none')}, "
    lines = [
        f"/dev/shm: {_size(shm.get('total_bytes'))}, {_size(shm.get('free_bytes'))} free",  # noqa: S108 (a label)
        memory + f"OOM kills {_count(group.get('oom_kills'))}",
    ]
    if seen.get("cuda_visible_devices") is not None:
        lines.append(f"CUDA_VISIBLE_DEVICES: set, {_count(seen.get('seen'))} of {_count(seen.get('of'))} cards seen")
    for name in _VARIABLES:
        if name in variables:
            value = str(variables[name])
            lines.append(f"{name}={value if _PLAIN.fullmatch(value) else '(set)'}")
    return lines


def _finding(code: str, severity: str, title: str, subject: str) -> str:
    """Name a finding by what is fixed in the program; its message may hold what is not for others."""
    about = f" ({subject})" if _SUBJECT.fullmatch(subject) or subject in (*_PACKAGES, *_VARIABLES) else ""
    return f"  {code} {severity}: {title}{about}"


def _version(value: object) -> str:
    """Return a version; a local part that is no maker's is only said to be there."""
    if not isinstance(value, str):
        return "unknown"
    public, plus, _ = value.partition("+")
    if not _PUBLIC.fullmatch(public):
        return "unknown"
    local = value[len(public) :]
    return value if not plus or _LOCAL.fullmatch(local) else f"{public} (local build)"


def _shaped(shape: re.Pattern[str], value: object) -> str:
    return value if isinstance(value, str) and shape.fullmatch(value) else "unknown"


def _one_of(value: object, words: tuple[str, ...]) -> str:
    return next((word for word in words if word == value), "unknown")


def _number(write: Callable[[int], str]) -> Callable[..., str]:
    def shaped(value: object, otherwise: str = "unknown") -> str:
        return write(value) if isinstance(value, int) and not isinstance(value, bool) else otherwise

    return shaped


_size = _number(size)
_bytes = _number(lambda value: f"{value:,} B")
_count = _number(str)


def _on(value: object) -> str:
    return "on" if value is True else "off" if value is False else "unknown"
