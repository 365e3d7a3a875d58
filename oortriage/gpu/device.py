"""The NVIDIA devices of this machine, as its driver states them: asked through NVML, never through torch.

Nothing here raises: what cannot be read is a value with a reason, and a remedy where there is one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from oortriage.gpu import nvml_trouble as trouble
from oortriage.gpu.nvml_library import open_library, told, told_bytes
from oortriage.gpu.nvml_trouble import Place, Unavailable
from oortriage.gpu.visible_devices import Candidate, Visible, visible

_MOST_DEVICES, _MOST_INSTANCES = 1024, 64


class Process(msgspec.Struct, frozen=True):
    """A process that holds memory on a device; ``used_bytes`` None where the driver does not tell.

    ``own``: it is this one. Inside a container the driver's process numbers are the host's.
    """

    pid: int
    name: str
    used_bytes: int | None
    own: bool = False


class MigInstance(msgspec.Struct, frozen=True):
    """A slice of a device that CUDA sees as one of its own; sizes in bytes."""

    uuid: str
    name: str
    gpu_instance: int | None
    compute_instance: int | None
    total_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    cuda_index: int | None = None


class Device(msgspec.Struct, frozen=True):
    """One device. Sizes in bytes; None is what the driver does not tell.

    ``index`` is the driver's number, ``cuda_index`` the one under which a CUDA program started here sees
    it: None when it does not, or sees only its MIG instances. ``mig`` is None on cards without it.
    ``problems`` say what could not be read, ``selection`` which setting decides what is seen.
    """

    index: int
    uuid: str
    name: str
    capability: tuple[int, int] | None
    total_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    processes: tuple[Process, ...]
    mig: bool | None
    instances: tuple[MigInstance, ...]
    driver: str
    cuda: str
    cuda_index: int | None
    selection: str
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The architecture as Triton names it: ``sm_90``."""
        return f"sm_{self.capability[0]}{self.capability[1]}" if self.capability else ""


def devices(
    nvml: Any = None,
    *,
    environment: Mapping[str, str] | None = None,
    place: Place | None = None,
    own_pid: int | None = None,
) -> list[Device] | Unavailable:
    """Read all devices, in the driver's order.

    Args:
        nvml: the module to ask; ``pynvml`` when left out.
        environment: the variables that say what CUDA sees; this process's own by default.
        place: where this runs; looked up by default.
        own_pid: the process marked as our own.
    """
    place = place or trouble.this_place()
    nvml = open_library(nvml, place)
    if isinstance(nvml, Unavailable):
        return nvml
    try:
        return _read(nvml, os.environ if environment is None else environment, place, own_pid or os.getpid())
    except Exception as problem:  # noqa: BLE001
        return trouble.unavailable(problem, place)
    finally:
        with contextlib.suppress(Exception):
            nvml.nvmlShutdown()


def _read(nvml: Any, environment: Mapping[str, str], place: Place, own_pid: int) -> list[Device] | Unavailable:
    ask = _Asking(nvml)
    count = nvml.nvmlDeviceGetCount()
    if not isinstance(count, int) or count < 1:
        return trouble.no_device(place)
    driver = ask.text("nvmlSystemGetDriverVersion") or ""
    cuda = _cuda_version(
        ask.number("nvmlSystemGetCudaDriverVersion_v2") or ask.number("nvmlSystemGetCudaDriverVersion")
    )
    found, first = [], None
    for index in range(min(count, _MOST_DEVICES)):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except Exception as problem:  # noqa: BLE001
            first = first or problem
            found.append(_unreadable(index, problem, driver, cuda))
            continue
        found.append(_device(_Asking(nvml), handle, index, driver, cuda, own_pid))
    if first and all(not one.uuid and one.problems for one in found):
        return trouble.unavailable(first, place)
    return _numbered(found, environment)


class _Asking:
    """Asks one thing at a time; what is refused is noted, except what a card simply does not have."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.problems: list[str] = []

    def value(self, name: str, *arguments: Any, quiet: bool = False) -> Any:
        try:
            return getattr(self._nvml, name)(*arguments)
        except Exception as problem:  # noqa: BLE001
            if not quiet and trouble.code_of(problem) not in (trouble.NOT_SUPPORTED, trouble.NOT_FOUND):
                self.problems.append(f"{name}: {trouble.said_by(problem)}")
            return None

    def text(self, name: str, *arguments: Any, quiet: bool = False) -> str | None:
        value = self.value(name, *arguments, quiet=quiet)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def number(self, name: str, *arguments: Any) -> int | None:
        return told(self.value(name, *arguments, quiet=True))


def _device(ask: _Asking, handle: Any, index: int, driver: str, cuda: str, own_pid: int) -> Device:
    memory = ask.value("nvmlDeviceGetMemoryInfo", handle)
    mode = _pair(ask.value("nvmlDeviceGetMigMode", handle))
    return Device(
        index=index,
        uuid=ask.text("nvmlDeviceGetUUID", handle) or "",
        name=ask.text("nvmlDeviceGetName", handle) or "",
        capability=_pair(ask.value("nvmlDeviceGetCudaComputeCapability", handle)),
        total_bytes=told_bytes(memory, "total"),
        used_bytes=told_bytes(memory, "used"),
        free_bytes=told_bytes(memory, "free"),
        processes=_processes(ask, handle, own_pid),
        mig=bool(mode[0]) if mode else None,
        instances=_instances(ask, handle) if mode and mode[0] else (),
        driver=driver,
        cuda=cuda,
        cuda_index=None,
        selection="",
        problems=tuple(ask.problems),
    )


def _unreadable(index: int, problem: Exception, driver: str, cuda: str) -> Device:
    said = trouble.unavailable(problem, "machine")
    return Device(
        index=index, uuid="", name="", capability=None, total_bytes=None, used_bytes=None, free_bytes=None,
        processes=(), mig=None, instances=(), driver=driver, cuda=cuda, cuda_index=None, selection="",
        problems=(f"{said.reason}: {said.remedy}",),
    )  # fmt: skip


def _processes(ask: _Asking, handle: Any, own_pid: int) -> tuple[Process, ...]:
    """List who holds memory; a process that both computes and draws is named once."""
    found: dict[int, Process] = {}
    for kind in ("Compute", "Graphics"):
        listed = ask.value(f"nvmlDeviceGet{kind}RunningProcesses", handle)
        for one in listed if isinstance(listed, (list, tuple)) else ():
            pid, used = told(getattr(one, "pid", None)), told_bytes(one, "usedGpuMemory")
            if pid is None or (pid in found and (used or 0) <= (found[pid].used_bytes or 0)):
                continue
            found[pid] = Process(pid, _process_name(ask, pid), used, own=pid == own_pid)
    return tuple(sorted(found.values(), key=lambda one: (-(one.used_bytes or 0), one.pid)))


def _process_name(ask: _Asking, pid: int) -> str:
    """Return the program's name without its folder; empty where it may not be read."""
    name = ask.text("nvmlSystemGetProcessName", pid, quiet=True)
    if not name:
        with contextlib.suppress(OSError, ValueError):
            name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    program = (name or "").split("\0")[0].split(" ")[0].replace("\\", "/")
    return program.rpartition("/")[2]


def _instances(ask: _Asking, handle: Any) -> tuple[MigInstance, ...]:
    found = []
    for index in range(min(ask.number("nvmlDeviceGetMaxMigDeviceCount", handle) or 0, _MOST_INSTANCES)):
        part = ask.value("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if part is None:
            continue  # a free place
        memory = ask.value("nvmlDeviceGetMemoryInfo", part)
        found.append(
            MigInstance(
                uuid=ask.text("nvmlDeviceGetUUID", part) or "",
                name=ask.text("nvmlDeviceGetName", part) or "",
                gpu_instance=ask.number("nvmlDeviceGetGpuInstanceId", part),
                compute_instance=ask.number("nvmlDeviceGetComputeInstanceId", part),
                total_bytes=told_bytes(memory, "total"),
                used_bytes=told_bytes(memory, "used"),
                free_bytes=told_bytes(memory, "free"),
            )
        )
    return tuple(found)


def _numbered(found: list[Device], environment: Mapping[str, str]) -> list[Device]:
    """Give each device, or its MIG instances, the number under which CUDA sees it."""
    seen = visible(environment, [_candidate(one) for one in found])
    notes = [*seen.notes, *_order_notes(found, environment)]
    uuids = _in_order(found) if seen.uuids is None else _parts_chosen(found, seen)
    number = {uuid: place for place, uuid in enumerate(uuids) if uuid}
    return [
        msgspec.structs.replace(
            one,
            cuda_index=None if one.mig and one.instances else number.get(one.uuid),
            instances=tuple(msgspec.structs.replace(part, cuda_index=number.get(part.uuid)) for part in one.instances),
            selection=seen.setting,
            notes=tuple(notes),
        )
        for one in found
    ]


def _candidate(device: Device) -> Candidate:
    return Candidate(
        device.uuid,
        tuple(part.uuid for part in device.instances),
        tuple(f"{device.uuid}/{part.gpu_instance}/{part.compute_instance}" for part in device.instances),
    )


def _in_order(found: list[Device]) -> list[str]:
    """Return what CUDA sees with nothing set: a card cut up for MIG shows its first instance, the others none."""
    whole = [one.uuid for one in found if not one.mig]
    cut = [one.instances[0].uuid for one in found if one.mig and one.instances]
    return cut[:1] if cut and not whole else whole


def _parts_chosen(found: list[Device], seen: Visible) -> list[str]:
    """Replace a card that is cut up by its first instance: that is what CUDA then opens."""
    first = {one.uuid: one.instances[0].uuid for one in found if one.mig and one.instances}
    return [first.get(uuid, uuid) for uuid in seen.uuids or ()]


def _order_notes(found: list[Device], environment: Mapping[str, str]) -> list[str]:
    notes = []
    if any(one.mig for one in found) and not all(one.mig for one in found):
        notes.append("some cards are cut up by MIG and some are not: the numbers CUDA gives them were not measured")
    kinds = {one.name for one in found if one.name}
    if len(kinds) > 1 and environment.get("CUDA_DEVICE_ORDER", "").strip() != "PCI_BUS_ID":
        notes.append(
            "the cards differ, and CUDA may count the fastest first; CUDA_DEVICE_ORDER=PCI_BUS_ID makes its "
            "numbers those of the driver, which are shown here"
        )
    return notes


def _cuda_version(number: int | None) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if number and number >= 1000 else ""


def _pair(value: Any) -> tuple[int, int] | None:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    first, second = told(value[0]), told(value[1])
    return None if first is None or second is None else (first, second)
