"""MIG: cards cut into instances, and which of them a program sees."""

from __future__ import annotations

from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.sizes import size

NAME = "mig"
TITLE = "MIG"

_GUIDE = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/index.html"

EMPTY = Code(
    "DR341",
    "error",
    "MIG is on and the card has no instance",
    "With MIG on, CUDA sees only compute instances. Without one the card is no CUDA device.",
    "make instances (`sudo nvidia-smi mig -cgi PROFILE -C`), or turn MIG off (`sudo nvidia-smi -i N -mig 0`)",
    _GUIDE,
)
ONE_SEEN = Code(
    "DR342",
    "note",
    "one MIG instance a process",
    "A CUDA program sees one MIG instance only, however many there are, and instances cannot be joined: tensor "
    "parallelism over them is not possible.",
    "choose the instance by CUDA_VISIBLE_DEVICES=MIG-UUID; for a larger model make a larger instance",
    _GUIDE,
)
PENDING = Code(
    "DR343",
    "warning",
    "a change of the MIG mode is pending",
    "The mode asked for takes effect after the card is reset.",
    "end what uses the card and reset it (`sudo nvidia-smi --gpu-reset -i N`), or restart the machine",
    _GUIDE,
)
CODES = (EMPTY, ONE_SEEN, PENDING)


def check(machine: Machine) -> Checked:
    """Look at the instances of each card."""
    reading = machine.nvml
    if reading.unavailable is not None:
        return Checked(not_checked=((TITLE, reading.unavailable.reason),))
    findings: list[Finding] = []
    cards = []
    for one in reading.devices:
        subject = f"GPU {one.index}"
        if reading.of(one.index).mig_pending:
            findings.append(PENDING.found(subject, f"{one.name}: the mode in use and the mode asked for differ"))
        if one.mig is None:
            continue
        listed: list[dict[str, Any]] = [
            {
                "name": part.name,
                "uuid": part.uuid,
                "total_bytes": part.total_bytes,
                "free_bytes": part.free_bytes,
                "cuda_index": part.cuda_index,
            }
            for part in one.instances
        ]
        cards.append({"index": one.index, "on": one.mig, "instances": listed})
        if one.mig and not one.instances:
            findings.append(EMPTY.found(subject, f"{one.name}: MIG is on, and there is no instance"))
        elif one.mig and len(one.instances) > 1:
            seen = [part for part in one.instances if part.cuda_index is not None]
            said = f"{one.name}: {len(one.instances)} instances; a CUDA program started here sees "
            said += f"{seen[0].name or 'one'} of {size(seen[0].total_bytes)}" if seen else "none of them"
            findings.append(ONE_SEEN.found(subject, said))
    return Checked({"cards": cards}, tuple(findings))
