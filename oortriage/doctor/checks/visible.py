"""Which cards a program started here sees: CUDA_VISIBLE_DEVICES and its like."""

from __future__ import annotations

import re
from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.gpu.visible_devices import Candidate, visible

NAME = "visible"
TITLE = "which cards are seen (CUDA_VISIBLE_DEVICES)"

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_GUIDE = "CUDA C++ Programming Guide, environment variables (CUDA_VISIBLE_DEVICES)"

HIDES_ALL = Code(
    "DR501",
    "warning",
    "CUDA_VISIBLE_DEVICES hides every card",
    "An empty value, -1 or NoDevFiles leaves no card: `No CUDA GPUs are available`, CUDA error 100.",
    "unset it, or name the cards: CUDA_VISIBLE_DEVICES=0,1",
    _GUIDE,
)
CUT = Code(
    "DR502",
    "error",
    "CUDA_VISIBLE_DEVICES names a card that is not there",
    "The list ends at the first entry that names no card: later ones are ignored, and where it is the first no card "
    "is left. Numbers begin at 0. In a container only its own cards are counted, again from 0.",
    "name cards that are there (`oortriage device` lists them), by number or by UUID",
    _GUIDE,
)
TWICE = Code(
    "DR503",
    "error",
    "CUDA_VISIBLE_DEVICES names a card twice",
    "A list that names a card twice leaves no card at all.",
    "name each card once",
    _GUIDE,
)
CONTAINER_NONE = Code(
    "DR504",
    "warning",
    "NVIDIA_VISIBLE_DEVICES gives this container no card",
    "NVIDIA's container runtime reads it when the container starts; void, none or an empty value mount no card.",
    "start the container with `--gpus all`, or NVIDIA_VISIBLE_DEVICES=all",
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
)
BAD_ORDER = Code(
    "DR505",
    "warning",
    "CUDA_DEVICE_ORDER has a value that CUDA does not know",
    "It knows FASTEST_FIRST (the default) and PCI_BUS_ID.",
    "set CUDA_DEVICE_ORDER=PCI_BUS_ID",
    _GUIDE,
)
UNCHECKED_SHAPE = Code(
    "DR506",
    "warning",
    "CUDA_VISIBLE_DEVICES holds an entry of no known form",
    "An entry is a number, GPU-UUID, or MIG-UUID. Anything else ends the list.",
    "name cards by number or by UUID",
    _GUIDE,
)
CODES = (HIDES_ALL, CUT, TWICE, CONTAINER_NONE, BAD_ORDER, UNCHECKED_SHAPE)


def check(machine: Machine) -> Checked:
    """Read the variables as CUDA reads them."""
    environment, reading = machine.environment, machine.nvml
    text = environment.get(_VARIABLE)
    order = environment.get("CUDA_DEVICE_ORDER", "")
    outer = environment.get("NVIDIA_VISIBLE_DEVICES")
    facts: dict[str, Any] = {
        "cuda_visible_devices": text,
        "cuda_device_order": order or None,
        "nvidia_visible_devices": outer,
    }
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    if order and order not in ("FASTEST_FIRST", "PCI_BUS_ID"):
        findings.append(BAD_ORDER.found("CUDA_DEVICE_ORDER", f"it is {order[:40]!r}"))
    if outer is not None and machine.place == "container" and outer.strip().lower() in ("", "void", "none"):
        findings.append(CONTAINER_NONE.found("NVIDIA_VISIBLE_DEVICES", f"it is {outer[:40]!r}"))
    if reading.unavailable is None:
        candidates = [
            Candidate(
                one.uuid,
                tuple(part.uuid for part in one.instances),
                tuple(f"{one.uuid}/{part.gpu_instance}/{part.compute_instance}" for part in one.instances),
            )
            for one in reading.devices
        ]
        seen = visible(environment, candidates)
        facts["seen"] = len(reading.devices) if seen.uuids is None else len(seen.uuids)
        facts["of"] = len(reading.devices)
        if text is not None:
            findings += _judged(text, seen.uuids or (), seen.notes)
    else:
        missed.append(("whether the cards that are named are there", reading.unavailable.reason))
        if text is not None:
            findings += _by_form(text)
    return Checked(facts, tuple(findings), tuple(missed))


def _judged(text: str, seen: tuple[str, ...], notes: tuple[str, ...]) -> list[Finding]:
    said = f"it is {text[:80]!r}"
    if notes and "second time" in notes[0]:
        return [TWICE.found(_VARIABLE, f"{said}: {notes[0]}")]
    if notes:
        left = f"{len(seen)} card{'' if len(seen) == 1 else 's'} left"
        return [CUT.found(_VARIABLE, f"{said}: {notes[0]}; {left}")]
    if not seen:
        return [HIDES_ALL.found(_VARIABLE, said)]
    return []


def _by_form(text: str) -> list[Finding]:
    """Judge what can be judged without knowing the cards."""
    said = f"it is {text[:80]!r}"
    entries = [one.strip() for one in text.split(",")]
    if not text.strip() or entries[0] in ("-1", "NoDevFiles"):
        return []  # without a card nothing is hidden, and to set it so is right
    odd = [one for one in entries if not re.fullmatch(r"\d{1,9}|GPU-[0-9a-fA-F-]{1,40}|MIG-[\w/.-]{1,80}|-1", one)]
    if odd:
        return [UNCHECKED_SHAPE.found(_VARIABLE, f"{said}: {odd[0][:40]!r}")]
    if len(set(entries)) < len(entries):
        return [TWICE.found(_VARIABLE, said)]
    return []
