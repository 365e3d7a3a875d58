"""The host memory that this process may use: control groups, version 1 and 2, and what they killed."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.sizes import size

NAME = "cgroup"
TITLE = "limits of the host's memory (cgroup)"

_V2 = "https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max, memory.events)"
_ROOT = "/sys/fs/cgroup"
#: Version 1 writes "no limit" as the largest multiple of a page.
_NO_LIMIT = 1 << 60
_MOST_LEVELS = 32

KILLED = Code(
    "DR411",
    "warning",
    "the OOM killer has killed in this control group",
    "The kernel ended processes of this control group for lack of host memory: exit code 137, `Killed`, or a worker "
    "that died without a word. It is the host's memory, not the card's.",
    "raise the limit (`docker run --memory`, resources.limits.memory), or hold less in host memory (fewer workers, "
    "smaller CPU offload and swap space)",
    _V2,
)
NEARLY = Code(
    "DR412",
    "warning",
    "the memory limit is nearly reached",
    "What this control group holds, without file pages that can be dropped, is above nine tenths of its limit.",
    "raise the limit, or hold less in host memory",
    _V2,
)
BELOW_CARD = Code(
    "DR413",
    "note",
    "less host memory than the card has",
    "The host's memory, or the limit of it, is below the size of a card. Weights that are read into host memory first, "
    "CPU offload and pinned buffers must fit into it.",
    "load safetensors (read piece by piece), keep CPU offload small, or raise the limit",
    _V2,
)
CODES = (KILLED, NEARLY, BELOW_CARD)


class Group(msgspec.Struct, frozen=True):
    """The memory controller of this process: bytes, None where there is no limit or it is not told."""

    version: int
    path: str
    limit: int | None
    used: int | None
    droppable: int | None
    kills: int | None


def check(machine: Machine) -> Checked:
    """Look at the control group of this process, and of what holds it."""
    if machine.system != "linux":
        return Checked(not_checked=((TITLE, f"{machine.system} has no control groups"),))
    memory = _meminfo(machine)
    group = read_group(machine)
    facts: dict[str, Any] = {
        "host_total_bytes": memory.get("MemTotal"),
        "host_available_bytes": memory.get("MemAvailable"),
        "swap_total_bytes": memory.get("SwapTotal"),
    }
    if isinstance(group, Unread):
        findings = _against_cards(None, memory.get("MemTotal"), machine)
        return Checked(facts, tuple(findings), ((TITLE, group.reason),))
    facts |= {
        "version": group.version,
        "limit_bytes": group.limit,
        "used_bytes": group.used,
        "droppable_bytes": group.droppable,
        "oom_kills": group.kills,
    }
    findings = [*_findings(group), *_against_cards(group.limit, memory.get("MemTotal"), machine)]
    return Checked(facts, tuple(findings))


def read_group(machine: Machine) -> Group | Unread:
    """Find this process's memory controller: the tightest limit on the way up, and the kills counted there."""
    text = machine.text("/proc/self/cgroup")
    if isinstance(text, Unread):
        return text
    unified = re.search(r"^0::(/.*)$", text, re.MULTILINE)
    old = re.search(r"^\d+:(?:[\w=,-]*,)?memory(?:,[\w=,-]*)?:(/.*)$", text, re.MULTILINE)
    if unified:
        found = _walk(machine, 2, _ROOT, unified.group(1))
        if found is not None:
            return found
    if old:
        found = _walk(machine, 1, f"{_ROOT}/memory", old.group(1))
        if found is not None:
            return found
    return Unread(f"no memory controller of this process is readable under {_ROOT}", "missing")


def _walk(machine: Machine, version: int, root: str, path: str) -> Group | None:
    """Go from the process's own group up to the root: every level's limit holds."""
    limit_name, used_name = ("memory.max", "memory.current") if version == 2 else (
        "memory.limit_in_bytes", "memory.usage_in_bytes")  # fmt: skip
    parts = [one for one in path.split("/") if one and one != ".."][:_MOST_LEVELS]
    tightest: Group | None = None
    for depth in range(len(parts), -1, -1):
        folder = "/".join((root, *parts[:depth]))
        used = _number(machine.text(f"{folder}/{used_name}"))
        limit_text = machine.text(f"{folder}/{limit_name}")
        if used is None and isinstance(limit_text, Unread):
            continue
        limit = _number(limit_text)
        limit = None if limit is None or limit >= _NO_LIMIT else limit
        if tightest is None or (limit is not None and (tightest.limit is None or limit < tightest.limit)):
            kills = tightest.kills if tightest else None
            own = _kills(machine, version, folder)
            tightest = Group(
                version, folder, limit, used, _droppable(machine, version, folder), own if own is not None else kills
            )
    return tightest


def _kills(machine: Machine, version: int, folder: str) -> int | None:
    text = machine.text(f"{folder}/{'memory.events' if version == 2 else 'memory.oom_control'}")
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE) if isinstance(text, str) else None
    return int(found.group(1)) if found else None


def _droppable(machine: Machine, version: int, folder: str) -> int | None:
    text = machine.text(f"{folder}/memory.stat")
    name = "inactive_file" if version == 2 else "total_inactive_file"
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE) if isinstance(text, str) else None
    return int(found.group(1)) if found else None


def _number(text: str | Unread) -> int | None:
    return int(text) if isinstance(text, str) and re.fullmatch(r"\s*\d{1,20}\s*", text) else None


def _meminfo(machine: Machine) -> dict[str, int]:
    text = machine.text("/proc/meminfo")
    if not isinstance(text, str):
        return {}
    return {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+):\s+(\d{1,15}) kB$", text, re.MULTILINE)}


def _findings(group: Group) -> list[Finding]:
    findings = []
    if group.kills:
        findings.append(KILLED.found("control group", f"{group.kills} process{'es' if group.kills > 1 else ''} killed"))
    if group.limit is None:
        return findings
    held = None if group.used is None else group.used - (group.droppable or 0)
    if held is not None and held >= group.limit * 9 // 10:
        findings.append(NEARLY.found("control group", f"{size(held)} of {size(group.limit)} are held"))
    return findings


def _against_cards(limit: int | None, host: int | None, machine: Machine) -> list[Finding]:
    """Hold what may be used, the limit or the host's memory, against the largest card."""
    bounds = [one for one in (limit, host) if one]
    largest = max((one.total_bytes or 0 for one in machine.nvml.devices), default=0)
    if not bounds or largest <= min(bounds):
        return []
    said = f"{size(min(bounds))} of host memory may be used, a card has {size(largest)}"
    return [BELOW_CARD.found("host memory", said)]
