"""Devices for people and for scripts; text says no more than JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from oortriage.gpu.device import Device, MigInstance
from oortriage.gpu.nvml_trouble import Unavailable
from oortriage.report.escape import visible


def device_report(found: list[Device] | Unavailable, name: str) -> str:
    """Render devices, or why there are none, as ``text`` or ``json``."""
    if name == "json":
        listed: dict[str, Any] = (
            {"unavailable": msgspec.to_builtins(found)}
            if isinstance(found, Unavailable)
            else {"devices": [msgspec.to_builtins(one) for one in found]}
        )
        return json.dumps({"schema_version": 1, **listed}, indent=2) + "\n"
    if isinstance(found, Unavailable):
        return f"{visible(found.reason)}\nremedy: {visible(found.remedy)}\n"
    first = found[0]
    seen = sum(one.cuda_index is not None or any(p.cuda_index is not None for p in one.instances) for one in found)
    lines = [
        f"driver {first.driver or 'unknown'}, CUDA up to {first.cuda or 'unknown'}",
        f"{first.selection}; seen by CUDA: {seen} of {len(found)}",
    ]
    for one in found:
        lines += _device_lines(one)
    lines += [f"note: {note}" for note in first.notes]
    return "\n".join(visible(line) for line in lines) + "\n"


def _device_lines(one: Device) -> list[str]:
    capability = f"compute {one.capability[0]}.{one.capability[1]}" if one.capability else "compute unknown"
    lines = [
        "",
        f"GPU {one.index}: {one.name or 'unknown'}, {capability}, {_seen(one)}",
        f"  {one.uuid or 'no UUID'}",
        f"  memory: {_memory(one)}",
    ]
    if one.mig is not None:
        lines.append(f"  MIG: {'on' if one.mig else 'off'}")
    for part in one.instances:
        number = "not seen by CUDA" if part.cuda_index is None else f"CUDA device {part.cuda_index}"
        lines.append(f"    {part.name or 'instance'}, {number}: {_memory(part)}")
        lines.append(f"      {part.uuid}")
    for process in one.processes:
        own = " (this process)" if process.own else ""
        lines.append(
            f"  process {process.pid} {process.name or '(name not readable)'}{own}: {_size(process.used_bytes)}"
        )
    lines += [f"  not read: {problem}" for problem in one.problems]
    return lines


def _seen(one: Device) -> str:
    if one.cuda_index is not None:
        return f"CUDA device {one.cuda_index}"
    if any(part.cuda_index is not None for part in one.instances):
        return "seen by CUDA through a MIG instance"
    return "not seen by CUDA"


def _memory(holder: Device | MigInstance) -> str:
    if holder.total_bytes is None:
        return "not told by the driver"
    return f"{_size(holder.total_bytes)}, {_size(holder.used_bytes)} used, {_size(holder.free_bytes)} free"


def _size(size: int | None) -> str:
    if size is None:
        return "unknown"
    return f"{size / (1 << 30):,.2f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):,.1f} MiB"
