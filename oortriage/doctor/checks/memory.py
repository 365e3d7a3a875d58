"""Who holds the cards' memory, and whether a server would start in what is left."""

from __future__ import annotations

import math
from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.interpreter import Installed
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.sizes import size
from oortriage.doctor.versions import release
from oortriage.gpu.device import Device, Process

NAME = "memory"
TITLE = "device memory by process"

#: Below this much memory without a named owner nothing is said, bytes: the driver's own part is not always told.
_UNNAMED_BYTES = 1 << 30
#: Whose processes the driver does not list here.
_NOT_LISTED = {
    "container": ": this is a container, and processes outside of it are not listed",
    "wsl2": ": this is WSL2, and programs of Windows are not listed",
}

START_GATE = Code(
    "DR321",
    "warning",
    "too little free memory for vLLM's default",
    "At start vLLM compares the free memory of the card with gpu_memory_utilization times its size, and refuses when "
    "there is less: `Free memory on device ... is less than desired GPU memory utilization`. The default is 0.90, and "
    "0.92 from 0.20.0.",
    "end what holds the memory, or lower --gpu-memory-utilization to what is free",
    "vLLM 0.9.2, v1/worker/gpu_worker.py, and 0.22.1 to 0.33.0, v1/worker/utils.py (request_memory); config/cache.py",
)
UNNAMED = Code(
    "DR322",
    "warning",
    "memory without a named owner",
    "The card's memory is in use and no process that the driver lists here accounts for it. Inside a container other "
    "containers' processes are not listed; a killed process that still hangs in the driver holds memory too.",
    "look on the host: `nvidia-smi --query-compute-apps=pid,used_memory --format=csv`, `fuser -v /dev/nvidia*`",
    "nvmlDeviceGetMemoryInfo and nvmlDeviceGetComputeRunningProcesses",
)
CODES = (START_GATE, UNNAMED)


def check(machine: Machine) -> Checked:
    """Look at the memory of each card."""
    reading = machine.nvml
    if reading.unavailable is not None:
        return Checked(not_checked=((TITLE, reading.unavailable.reason),))
    share = default_share(machine.installed)
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    cards = []
    for one in reading.devices:
        subject = f"GPU {one.index}"
        cards.append(
            {
                "index": one.index,
                "used_bytes": one.used_bytes,
                "processes": [_process(machine, process) for process in one.processes],
            }
        )
        if one.total_bytes is None or one.used_bytes is None:
            missed.append((f"{subject}: memory", "the driver does not tell it (memory shared with the host, or MIG)"))
            continue
        findings += _unnamed(one, reading.of(one.index).reserved_bytes, machine, missed)
        if share is not None and one.cuda_index is not None:
            findings += _gate(subject, one, share)
    if share is None:
        missed.append(("vLLM's start gate", "no vLLM with that gate (0.9.1 and later) is installed here"))
    return Checked({"cards": cards, "vllm_default_share": share}, tuple(findings), tuple(missed))


def default_share(installed: Installed | Unread) -> float | None:
    """Return the default gpu_memory_utilization of the installed vLLM; None where it has no gate at start."""
    version = () if isinstance(installed, Unread) else release(installed.version("vllm"))
    if version < (0, 9, 1):
        return None
    return 0.92 if version >= (0, 20) else 0.90


def _process(machine: Machine, one: Process) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "name": one.name,
        "used_bytes": one.used_bytes,
        "listed_here": not isinstance(machine.entry(f"/proc/{one.pid}"), Unread),
    }


def _unnamed(one: Device, reserved: int | None, machine: Machine, missed: list[tuple[str, str]]) -> list[Finding]:
    subject = f"GPU {one.index}"
    untold = [process for process in one.processes if process.used_bytes is None]
    if untold:
        missed.append(
            (f"{subject}: memory by process", f"the driver does not tell it of {len(untold)} of {len(one.processes)}")
        )
        return []
    named = sum(process.used_bytes or 0 for process in one.processes) + sum(
        part.used_bytes or 0 for part in one.instances
    )
    held = (one.used_bytes or 0) - (reserved or 0)
    if held - named < max(_UNNAMED_BYTES, (one.total_bytes or 0) // 50):
        return []
    where = _NOT_LISTED.get(machine.place, "")
    said = (
        f"{size(held)} are in use, processes listed here hold {size(named)}, {size(held - named)} have no owner{where}"
    )
    return [UNNAMED.found(subject, said)]


def _holders(one: Device) -> str:
    """Name who holds most."""
    told = [
        f"process {each.pid} ({each.name or 'name not readable'}) {size(each.used_bytes)}" for each in one.processes
    ]
    return f"; held by {', '.join(told[:3])}" if told else ""


def _gate(subject: str, one: Device, share: float) -> list[Finding]:
    total, free = one.total_bytes or 0, one.free_bytes
    if free is None or not total or free >= share * total:
        return []
    most = math.floor(free / total * 100) / 100
    said = (
        f"{size(free)} of {size(total)} are free ({free / total:.2f}); vLLM's default wants {share:.2f}, "
        f"{size(int(share * total))}{_holders(one)}"
    )
    remedy = f"end what holds the memory, or start with --gpu-memory-utilization {most:.2f} or a little less"
    return [START_GATE.found(subject, said, remedy if most > 0 else "")]
