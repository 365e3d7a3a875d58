"""Limits of this process: locked memory, open files."""

from __future__ import annotations

from typing import Any

from oortriage.doctor.finding import Checked, Code
from oortriage.doctor.machine import LimitName, Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.sizes import size

NAME = "limits"
TITLE = "limits of this process (ulimit)"

_NAMES: tuple[LimitName, ...] = ("memlock", "nofile", "core", "stack")
_SMALL_LOCK = 1 << 30
_FEW_FILES = 4096

LOCKED = Code(
    "DR421",
    "warning",
    "little memory may be locked, and there is InfiniBand",
    "RDMA registers memory with the kernel, which counts it as locked: NCCL over InfiniBand fails with `ibv_reg_mr` "
    "and `Cannot allocate memory`. CUDA's own pinned memory is locked by the driver and not counted.",
    "`ulimit -l unlimited`, `docker run --ulimit memlock=-1`",
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
)
FEW = Code(
    "DR422",
    "note",
    "few files may be open",
    "A server opens a file for every connection, and workers for every shard and socket.",
    "`ulimit -n 65536`, `docker run --ulimit nofile=65536`",
    "vLLM 0.9.2 to 0.33.0 raises the soft limit to 65535 itself (set_ulimit), as far as the hard limit lets it",
)
CODES = (LOCKED, FEW)


def check(machine: Machine) -> Checked:
    """Look at the limits."""
    facts: dict[str, Any] = {}
    missed = []
    findings = []
    for name in _NAMES:
        found = machine.limit(name)
        if isinstance(found, Unread):
            missed.append((f"limit {name}", found.reason))
            continue
        unit = "" if name == "nofile" else "_bytes"
        facts[name] = {f"{which}{unit}": _told(value) for which, value in zip(("soft", "hard"), found, strict=True)}
        if name == "memlock" and found[0] is not None and found[0] < _SMALL_LOCK and _infiniband(machine):
            findings.append(
                LOCKED.found("memlock", f"{size(found[0])} may be locked, and there are InfiniBand devices")
            )
        if name == "nofile" and found[1] is not None and found[1] < _FEW_FILES:
            findings.append(FEW.found("nofile", f"{found[0]} files, {found[1]} at most"))
    return Checked(facts, tuple(findings), tuple(missed))


def _told(value: int | None) -> int | str:
    return "unlimited" if value is None else value


def _infiniband(machine: Machine) -> bool:
    names = machine.names("/sys/class/infiniband")
    return isinstance(names, list) and bool(names)
