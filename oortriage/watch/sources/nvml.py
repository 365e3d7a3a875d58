"""Device memory through NVML: opened once, then two or three calls a device and sample."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

from oortriage.gpu import nvml_trouble as trouble
from oortriage.gpu.nvml_library import open_library, told_bytes
from oortriage.gpu.nvml_trouble import Unavailable
from oortriage.watch.sample import DeviceMemory, ProcessMemory

_MOST_DEVICES, _MOST_INSTANCES = 1024, 64
_KINDS = ("Compute", "Graphics")


class _Part(NamedTuple):
    handle: Any
    label: str
    uuid: str
    name: str


class NvmlSource:
    """The devices chosen, MIG instances in the place of a card that is cut up."""

    def __init__(self, nvml: Any, parts: list[_Part]) -> None:
        """Use :func:`open_nvml`."""
        self._nvml, self._parts = nvml, parts
        self._names: dict[int, str] = {}
        self._silent: set[tuple[str, str]] = set()

    @property
    def labels(self) -> list[str]:
        """The devices' labels."""
        return [part.label for part in self._parts]

    def read(self) -> tuple[list[DeviceMemory], list[str]]:
        """Read every device; what is refused is a problem in words, and its figures are missing."""
        problems: list[str] = []
        return [self._device(part, problems) for part in self._parts], problems

    def close(self) -> None:
        """Let the library go."""
        with contextlib.suppress(Exception):
            self._nvml.nvmlShutdown()

    def _device(self, part: _Part, problems: list[str]) -> DeviceMemory:
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(part.handle)
        except Exception as problem:  # noqa: BLE001 (a lost GPU must not end the watching of the others)
            problems.append(f"GPU {part.label}: memory: {trouble.said_by(problem)}")
            memory = None
        return DeviceMemory(
            part.label,
            part.uuid,
            part.name,
            told_bytes(memory, "total"),
            told_bytes(memory, "used"),
            told_bytes(memory, "free"),
            self._processes(part, problems),
        )

    def _processes(self, part: _Part, problems: list[str]) -> tuple[ProcessMemory, ...]:
        """List who holds memory; a process that both computes and draws is named once, with the larger figure."""
        found: dict[int, int | None] = {}
        for kind in _KINDS:
            if (part.label, kind) in self._silent:
                continue
            try:
                listed = getattr(self._nvml, f"nvmlDeviceGet{kind}RunningProcesses")(part.handle)
            except Exception as problem:  # noqa: BLE001
                if trouble.code_of(problem) in (trouble.NOT_SUPPORTED, trouble.NOT_FOUND):
                    self._silent.add((part.label, kind))  # it will not be supported the next time either
                else:
                    problems.append(f"GPU {part.label}: processes: {trouble.said_by(problem)}")
                continue
            for one in listed if isinstance(listed, (list, tuple)) else ():
                pid = getattr(one, "pid", None)
                if isinstance(pid, int) and pid >= 0:
                    used = told_bytes(one, "usedGpuMemory")
                    found[pid] = used if found.get(pid) is None else max(found[pid] or 0, used or 0)
        return tuple(ProcessMemory(pid, self._name(pid), used) for pid, used in sorted(found.items()))

    def _name(self, pid: int) -> str:
        """Return the program's name without its folder, asked for once a process; empty where it may not be read."""
        if pid not in self._names:
            if len(self._names) > 4096:
                self._names.clear()
            said: Any = None
            with contextlib.suppress(Exception):
                said = self._nvml.nvmlSystemGetProcessName(pid)
            if isinstance(said, bytes):
                said = said.decode("utf-8", "replace")
            if not isinstance(said, str) or not said:
                said = ""
                with contextlib.suppress(OSError):
                    said = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
            self._names[pid] = said.split("\0")[0].split(" ")[0].replace("\\", "/").rpartition("/")[2][:256]
        return self._names[pid]


def open_nvml(wanted: list[str], nvml: Any = None) -> NvmlSource | Unavailable:
    """Open the devices, all of them or those named by index, label or UUID in ``wanted``.

    Returns:
        The source, or why there is none. A name that no device has is left to :func:`missing`.
    """
    place = trouble.this_place()
    nvml = open_library(nvml, place)
    if isinstance(nvml, Unavailable):
        return nvml
    try:
        count = nvml.nvmlDeviceGetCount()
        parts = _parts(nvml, min(count, _MOST_DEVICES) if isinstance(count, int) else 0)
    except Exception as problem:  # noqa: BLE001
        with contextlib.suppress(Exception):
            nvml.nvmlShutdown()
        return trouble.unavailable(problem, place)
    if not parts:
        with contextlib.suppress(Exception):
            nvml.nvmlShutdown()
        return trouble.no_device(place)
    return NvmlSource(nvml, [part for part in parts if not wanted or _is_wanted(part, wanted)])


def missing(source: NvmlSource, wanted: list[str]) -> list[str]:
    """Return the names in ``wanted`` that no device has."""
    return [name for name in wanted if not any(_is_wanted(part, [name]) for part in source._parts)]  # noqa: SLF001


def _is_wanted(part: _Part, wanted: list[str]) -> bool:
    names = (part.label, part.label.partition(":")[0], part.uuid)
    return any(name in names for name in wanted)


def _parts(nvml: Any, count: int) -> list[_Part]:
    found = []
    first: Exception | None = None
    for index in range(count):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception as problem:  # noqa: BLE001
            first = first or problem
            continue
        whole = _Part(
            handle, str(index), _text(nvml, "nvmlDeviceGetUUID", handle), _text(nvml, "nvmlDeviceGetName", handle)
        )
        found += _instances(nvml, whole) or [whole]
    if first and not found:
        raise first
    return found


def _instances(nvml: Any, whole: _Part) -> list[_Part]:
    try:
        if not nvml.nvmlDeviceGetMigMode(whole.handle)[0]:
            return []
        places = min(nvml.nvmlDeviceGetMaxMigDeviceCount(whole.handle), _MOST_INSTANCES)
    except Exception:  # noqa: BLE001 (a card without MIG)
        return []
    found = []
    for place in range(places):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(whole.handle, place)
        except Exception:  # noqa: BLE001, S112 (a free place)
            continue
        label = f"{whole.label}:{place}"
        found.append(_Part(part, label, _text(nvml, "nvmlDeviceGetUUID", part), _text(nvml, "nvmlDeviceGetName", part)))
    return found


def _text(nvml: Any, name: str, handle: Any) -> str:
    try:
        said = getattr(nvml, name)(handle)
    except Exception:  # noqa: BLE001
        return ""
    if isinstance(said, bytes):
        return said.decode("utf-8", "replace")
    return said if isinstance(said, str) else ""
