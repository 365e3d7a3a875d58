"""MPS: the daemon by which several processes share a card's context."""

from __future__ import annotations

import re
from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread

NAME = "mps"
TITLE = "MPS"

_GUIDE = "https://docs.nvidia.com/deploy/mps/latest/appendix-environment-variables.html (read 2026-11-30)"
_DEFAULT_PIPES = "/tmp/nvidia-mps"  # noqa: S108 (NVIDIA's default)
_DEFAULT_LOGS = "/var/log/nvidia-mps"
#: As the kernel keeps a program's name: 15 letters.
_DAEMON = "nvidia-cuda-mps"

NO_PIPES = Code(
    "DR351",
    "warning",
    "the MPS pipe folder that is named is not there",
    "CUDA_MPS_PIPE_DIRECTORY names the folder through which programs reach the MPS daemon; both must name the same. "
    "Where there is no daemon behind it a program runs without MPS: it shares no context, and its limits do not hold.",
    "start the daemon with the same folder (`nvidia-cuda-mps-control -d`), mount the folder into the container, or "
    "unset the variable",
    _GUIDE,
)
DEAD_PIPES = Code(
    "DR352",
    "warning",
    "MPS pipes without a daemon",
    "There are pipes of an MPS daemon and no such process. A program that reaches for them can fail with error 805 "
    "(MPS client failed to connect to the MPS control daemon or the MPS server).",
    "start the daemon anew, or remove the folder and unset CUDA_MPS_PIPE_DIRECTORY",
    _GUIDE,
)
NO_CAP = Code(
    "DR353",
    "note",
    "MPS shares the memory without a limit",
    "MPS isolates the processes' address spaces, and caps no memory: each may take the whole card.",
    "give each client CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=10G (device=size), or --gpu-memory-utilization for vLLM",
    _GUIDE,
)
BAD_LIMIT = Code(
    "DR354",
    "error",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT is not readable",
    "Its form is a list of device=size with the letters M or G, such as 0=1G,1=512MB.",
    "write it as 0=10G,1=10G",
    _GUIDE,
)
BAD_SHARE = Code(
    "DR355",
    "warning",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is not a share",
    "It is a number above 0 and up to 100: the part of the multiprocessors that a client may use.",
    "write a number from 1 to 100, or unset it",
    _GUIDE,
)
CODES = (NO_PIPES, DEAD_PIPES, NO_CAP, BAD_LIMIT, BAD_SHARE)


def check(machine: Machine) -> Checked:
    """Look at the daemon, its folders and the variables."""
    environment = machine.environment
    named = environment.get("CUDA_MPS_PIPE_DIRECTORY", "")
    pipes = named or _DEFAULT_PIPES
    listed = machine.names(pipes)
    control = isinstance(listed, list) and "control" in listed
    daemon = _daemon(machine)
    limit = environment.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "")
    share = environment.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "")
    facts: dict[str, Any] = {
        "pipe_directory": pipes,
        "pipe_directory_set": bool(named),
        "log_directory": environment.get("CUDA_MPS_LOG_DIRECTORY", "") or _DEFAULT_LOGS,
        "control_pipe": control,
        "daemon": daemon,
        "memory_limit": limit,
        "active_thread_percentage": share,
        "processes": [one.mps_processes for one in machine.nvml.health if one.mps_processes],
    }
    findings: list[Finding] = []
    if named and not control:
        said = listed.reason if isinstance(listed, Unread) else f"{pipes} holds no pipe named control"
        findings.append(NO_PIPES.found("CUDA_MPS_PIPE_DIRECTORY", said))
    elif control and daemon is False and machine.place == "machine":
        findings.append(DEAD_PIPES.found(pipes, f"{pipes} holds pipes, and no process named {_DAEMON} runs"))
    if control and daemon and not limit:
        findings.append(NO_CAP.found("MPS", "an MPS daemon runs, and CUDA_MPS_PINNED_DEVICE_MEM_LIMIT is not set"))
    if limit and not re.fullmatch(
        r"\s*\d+\s*=\s*\d+\s*[MG]B?\s*(?:,\s*\d+\s*=\s*\d+\s*[MG]B?\s*)*", limit, re.IGNORECASE
    ):
        findings.append(BAD_LIMIT.found("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", f"it is {limit[:60]!r}"))
    if share and not _is_share(share):
        findings.append(BAD_SHARE.found("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", f"it is {share[:30]!r}"))
    missed = () if daemon is not None else (("the MPS daemon", "the list of processes cannot be read"),)
    return Checked(facts, tuple(findings), missed)


def _daemon(machine: Machine) -> bool | None:
    """Look for the daemon among the processes; None where they cannot be listed."""
    names = machine.names("/proc")
    if isinstance(names, Unread):
        return None
    for one in names:
        if one.isdigit():
            command = machine.text(f"/proc/{one}/comm")
            if isinstance(command, str) and command.strip().startswith(_DAEMON):
                return True
    return False


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) <= 100
    except ValueError:
        return False
