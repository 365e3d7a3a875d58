"""The cards: what they are, what a block of theirs may have, who may use them."""

from __future__ import annotations

from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.reading import Health
from oortriage.gpu.device import Device
from oortriage.gpu.specs import by_capability

NAME = "cards"
TITLE = "the cards, their modes and limits"

_SMI = "https://docs.nvidia.com/deploy/nvidia-smi/index.html"
_FABRIC = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html"

PROHIBITED = Code(
    "DR301",
    "error",
    "compute mode forbids CUDA",
    "In mode PROHIBITED no CUDA program gets a context on the card.",
    "`sudo nvidia-smi -i N -c DEFAULT`",
    _SMI,
)
EXCLUSIVE = Code(
    "DR302",
    "warning",
    "compute mode lets one process use the card",
    "In mode EXCLUSIVE_PROCESS a second process fails with `all CUDA-capable devices are busy or unavailable`. A "
    "server with an engine process beside its front end, a second replica, or a notebook left open is one.",
    "`sudo nvidia-smi -i N -c DEFAULT`, unless an MPS daemon is meant to share the card",
    _SMI,
)
NO_PERSISTENCE = Code(
    "DR303",
    "note",
    "persistence mode is off",
    "Without it the driver lets go of a card when the last program ends: the next start is slower, and counters of "
    "the driver's life (volatile ECC) begin anew.",
    "run nvidia-persistenced, or `sudo nvidia-smi -pm 1`",
    "https://docs.nvidia.com/deploy/driver-persistence/index.html",
)
FABRIC = Code(
    "DR304",
    "warning",
    "the NVLink fabric is not ready",
    "On boards with NVSwitch CUDA waits for the fabric manager to set up the fabric: until then it fails with error "
    "802 (system not yet initialized).",
    "start nvidia-fabricmanager of the driver's own release on the host",
    _FABRIC,
)
PART_UNREAD = Code(
    "DR305",
    "warning",
    "a card does not tell everything",
    "The driver refused some questions about this card.",
    "see the reason; without permission run as another user, else look for Xid lines in the kernel's log",
    "nvml.h of CUDA 13, nvmlReturn_t",
)
MIXED = Code(
    "DR306",
    "note",
    "the cards are of several kinds",
    "CUDA may count the fastest card first where NVML and nvidia-smi count by PCI bus; numbers in "
    "CUDA_VISIBLE_DEVICES then mean other cards than in nvidia-smi.",
    "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name cards by UUID",
    "CUDA C++ Programming Guide, environment variables (CUDA_DEVICE_ORDER)",
)
CODES = (PROHIBITED, EXCLUSIVE, NO_PERSISTENCE, FABRIC, PART_UNREAD, MIXED)


def check(machine: Machine) -> Checked:
    """Look at each card."""
    reading = machine.nvml
    if reading.unavailable is not None:
        return Checked(not_checked=((TITLE, reading.unavailable.reason),))
    findings: list[Finding] = []
    for one in reading.devices:
        findings += _modes(machine, one, reading.of(one.index))
        if one.problems:
            findings.append(PART_UNREAD.found(f"GPU {one.index}", "; ".join(one.problems)))
    kinds = sorted({one.name for one in reading.devices if one.name})
    if len(kinds) > 1 and machine.environment.get("CUDA_DEVICE_ORDER", "").strip() != "PCI_BUS_ID":
        findings.append(MIXED.found("cards", ", ".join(kinds)))
    return Checked({"cards": [_facts(one, reading.of(one.index)) for one in reading.devices]}, tuple(findings))


def _facts(one: Device, health: Health) -> dict[str, Any]:
    architecture = by_capability(f"{one.capability[0]}.{one.capability[1]}") if one.capability else None
    return {
        "index": one.index,
        "name": one.name,
        "uuid": one.uuid,
        "bus": health.bus,
        "cuda_index": one.cuda_index,
        "capability": f"{one.capability[0]}.{one.capability[1]}" if one.capability else "",
        "total_bytes": one.total_bytes,
        "used_bytes": one.used_bytes,
        "free_bytes": one.free_bytes,
        "reserved_bytes": health.reserved_bytes,
        "shared_memory_per_block_bytes": architecture.shared_per_block if architecture else None,
        "shared_memory_static_bytes": architecture.shared_static if architecture else None,
        "shared_memory_source": architecture.source_of("shared_per_block") if architecture else "",
        "compute_mode": health.compute_mode,
        "persistence": health.persistence,
        "fabric": health.fabric,
        "mig": one.mig,
    }


def _modes(machine: Machine, one: Device, health: Health) -> list[Finding]:
    findings = []
    subject = f"GPU {one.index}"
    if health.compute_mode == "prohibited":
        findings.append(PROHIBITED.found(subject, f"{one.name}: compute mode is PROHIBITED"))
    elif health.compute_mode.startswith("exclusive"):
        findings.append(EXCLUSIVE.found(subject, f"{one.name}: compute mode is {health.compute_mode.upper()}"))
    if health.persistence is False and machine.place != "wsl2":
        findings.append(NO_PERSISTENCE.found(subject, f"{one.name}: persistence mode is off"))
    if health.fabric in ("not_started", "in_progress"):
        state = health.fabric.replace("_", " ")
        findings.append(FABRIC.found(subject, f"{one.name}: the driver says the fabric's state is {state}"))
    return findings
