"""What NVIDIA's management library says of every card, for the checks; read in a child, as a sick driver may hang.

``oortriage.gpu.device`` gives devices, memory and processes; here come health, modes and the ways between cards.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from oortriage.doctor.outside import Ran, Unread
from oortriage.gpu.device import Device, devices
from oortriage.gpu.nvml_trouble import Place, Unavailable

#: nvmlComputeMode_t.
_COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
#: nvmlGpuP2PStatus_t in the letters of ``nvidia-smi topo -p2p``; nvidia-smi has none for a registry key.
_P2P = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
#: nvmlGpuFabricState_t.
_FABRIC = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
#: nvmlMemory_v2_t: the version number that asks for it.
_MEMORY_V2 = 0x02000028


class Health(msgspec.Struct, frozen=True):
    """Modes and error counters of one card; None is what the driver does not tell.

    ``reserved_bytes`` is what the driver keeps for itself. ``volatile`` counts since the driver was loaded,
    ``aggregate`` over the card's life. ``remapped`` are rows: correctable, uncorrectable; ``retired`` pages:
    for single-bit and for double-bit errors.
    """

    index: int
    bus: str = ""
    reserved_bytes: int | None = None
    persistence: bool | None = None
    compute_mode: str = ""
    mig_pending: bool | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None
    corrected_volatile: int | None = None
    uncorrected_volatile: int | None = None
    corrected_aggregate: int | None = None
    uncorrected_aggregate: int | None = None
    remapped: tuple[int, int] | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired: tuple[int, int] | None = None
    retire_pending: bool | None = None
    fabric: str = ""
    mps_processes: int | None = None


class Peer(msgspec.Struct, frozen=True):
    """Whether one card may read and write another's memory, in the letters of ``nvidia-smi topo -p2p``."""

    first: int
    second: int
    read: str
    write: str


class Reading(msgspec.Struct, frozen=True):
    """All that was read. ``unavailable`` says why there are no devices.

    ``broken`` says why the rest is not known: the process that asked ended, or hung, before all was asked.
    """

    devices: tuple[Device, ...] = ()
    unavailable: Unavailable | None = None
    health: tuple[Health, ...] = ()
    peers: tuple[Peer, ...] = ()
    broken: str = ""

    @property
    def driver(self) -> str:
        """The driver's release, "580.95.05"; empty when not known."""
        return self.devices[0].driver if self.devices else ""

    @property
    def ceiling(self) -> str:
        """The highest CUDA that the driver runs, "13.0": what nvidia-smi prints as its CUDA version."""
        return self.devices[0].cuda if self.devices else ""

    def of(self, index: int) -> Health:
        """Return the health of a card; all unknown where it was not read."""
        return next((one for one in self.health if one.index == index), Health(index))


def read(
    nvml: Any = None,
    *,
    environment: Mapping[str, str] | None = None,
    place: Place | None = None,
    so_far: Callable[[Reading], None] | None = None,
) -> Reading:
    """Read everything; what cannot be read is a value.

    Args:
        nvml: as for ``devices``, like the next two.
        environment: see there.
        place: see there.
        so_far: gets what is known before each further part is asked for: a library can end its process.
    """
    found = devices(nvml, environment=environment, place=place)
    if isinstance(found, Unavailable):
        return Reading(unavailable=found)
    so_far = so_far or (lambda _reading: None)
    so_far(Reading(tuple(found)))
    if nvml is None:
        import pynvml as nvml  # type: ignore[import-untyped,unused-ignore,no-redef]
    ask = _Asking(nvml)
    if not ask.begin():
        return Reading(tuple(found))
    try:
        handles = {one.index: ask.value("nvmlDeviceGetHandleByIndex", one.index) for one in found}
        there = {index: handle for index, handle in handles.items() if handle is not None}
        peers = _peers(ask, there)
        health = {index: Health(index) for index in there}
        for part in _PARTS:
            for index, handle in there.items():
                so_far(Reading(tuple(found), None, tuple(health.values()), peers))
                health[index] = msgspec.structs.replace(health[index], **part(ask, handle))
        return Reading(tuple(found), None, tuple(health.values()), peers)
    finally:
        ask.end()


class _Asking:
    """Asks one thing at a time; None is what is refused, not supported or not in this version of the module."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml

    def begin(self) -> bool:
        try:
            self._nvml.nvmlInit()
        except Exception:  # noqa: BLE001 (it answered a moment ago; without it there is no health)
            return False
        return True

    def end(self) -> None:
        with contextlib.suppress(Exception):
            self._nvml.nvmlShutdown()

    def value(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(*arguments)
        except Exception:  # noqa: BLE001
            return None

    def number(self, name: str, *arguments: Any) -> int | None:
        return _number(self.value(name, *arguments))

    def flag(self, name: str, *arguments: Any) -> bool | None:
        value = self.number(name, *arguments)
        return None if value is None else bool(value)

    def numbers(self, name: str, count: int, *arguments: Any) -> tuple[int, ...] | None:
        value = self.value(name, *arguments)
        if not isinstance(value, (list, tuple)) or len(value) != count:
            return None
        found = tuple(number for one in value if (number := _number(one)) is not None)
        return found if len(found) == count else None

    def count(self, name: str, *arguments: Any) -> int | None:
        value = self.value(name, *arguments)
        return len(value) if isinstance(value, (list, tuple)) else None

    def fabric(self, handle: Any) -> str:
        """Ask for the state of the fabric, which the library writes into a structure of its module."""
        make = getattr(self._nvml, "c_nvmlGpuFabricInfo_t", None)
        if not callable(make):
            return ""
        try:
            told = make()
            # The module hands this one on as it is; the structure itself in place of its address ends the process.
            self._nvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(told))
            return _FABRIC.get(_or(_number(getattr(told, "state", None)), -1), "")
        except Exception:  # noqa: BLE001
            return ""


def _modes(ask: _Asking, handle: Any) -> dict[str, Any]:
    mig = ask.numbers("nvmlDeviceGetMigMode", 2, handle)
    return {
        "bus": _bus(ask.value("nvmlDeviceGetPciInfo", handle)),
        "persistence": ask.flag("nvmlDeviceGetPersistenceMode", handle),
        "compute_mode": _COMPUTE_MODES.get(_or(ask.number("nvmlDeviceGetComputeMode", handle), -1), ""),
        "mig_pending": mig[0] != mig[1] if mig else None,
    }


def _reserved(ask: _Asking, handle: Any) -> dict[str, Any]:
    told_ = ask.value("nvmlDeviceGetMemoryInfo", handle, _MEMORY_V2)
    return {"reserved_bytes": _number(getattr(told_, "reserved", None))}


def _ecc(ask: _Asking, handle: Any) -> dict[str, Any]:
    mode = ask.numbers("nvmlDeviceGetEccMode", 2, handle)
    return {
        "ecc": bool(mode[0]) if mode else None,
        "ecc_pending": bool(mode[1]) if mode else None,
        "corrected_volatile": ask.number("nvmlDeviceGetTotalEccErrors", handle, 0, 0),
        "uncorrected_volatile": ask.number("nvmlDeviceGetTotalEccErrors", handle, 1, 0),
        "corrected_aggregate": ask.number("nvmlDeviceGetTotalEccErrors", handle, 0, 1),
        "uncorrected_aggregate": ask.number("nvmlDeviceGetTotalEccErrors", handle, 1, 1),
    }


def _rows(ask: _Asking, handle: Any) -> dict[str, Any]:
    rows = ask.numbers("nvmlDeviceGetRemappedRows", 4, handle)
    return {
        "remapped": (rows[0], rows[1]) if rows else None,
        "remap_pending": bool(rows[2]) if rows else None,
        "remap_failed": bool(rows[3]) if rows else None,
    }


def _pages(ask: _Asking, handle: Any) -> dict[str, Any]:
    single, double = (ask.count("nvmlDeviceGetRetiredPages", handle, cause) for cause in (0, 1))
    return {
        "retired": (single, double) if single is not None and double is not None else None,
        "retire_pending": ask.flag("nvmlDeviceGetRetiredPagesPendingStatus", handle),
    }


def _mps(ask: _Asking, handle: Any) -> dict[str, Any]:
    return {"mps_processes": ask.count("nvmlDeviceGetMPSComputeRunningProcesses", handle)}


def _fabric(ask: _Asking, handle: Any) -> dict[str, Any]:
    return {"fabric": ask.fabric(handle)}


#: What is asked of every card, in this order; what takes structures of the module's comes last.
_PARTS = (_modes, _ecc, _rows, _pages, _mps, _reserved, _fabric)


def _peers(ask: _Asking, handles: Mapping[int, Any]) -> tuple[Peer, ...]:
    found = []
    for first, one in handles.items():
        for second, other in handles.items():
            if first == second:
                continue
            read_, write = (ask.number("nvmlDeviceGetP2PStatus", one, other, index) for index in (0, 1))
            if read_ is None and write is None:
                continue
            found.append(Peer(first, second, _P2P.get(_or(read_, 6), "U"), _P2P.get(_or(write, 6), "U")))
    return tuple(found)


def _bus(info: Any) -> str:
    """Return ``0000:0b:00`` as kernel messages write it: domain of four digits, no function."""
    text = getattr(info, "busId", "")
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    return short_bus(text) if isinstance(text, str) else ""


def short_bus(text: str) -> str:
    """Write a PCI address as ``0000:0b:00``: in small letters, without function and without a longer domain."""
    parts = text.strip().lower().split(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0000", *parts]
    return ":".join((parts[0][-4:], *parts[1:])) if len(parts) == 3 else ""


def _number(value: Any) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < (1 << 64) - 1:
        return None
    return value


def _or(value: int | None, other: int) -> int:
    return other if value is None else value


def told(done: Ran | Unread, seconds: float) -> Reading:
    """Read what the child printed: the last whole line, where it was ended before its time."""
    reading = _last(done.out)
    if isinstance(done, Ran) and done.code == 0 and reading is not None:
        return reading
    if isinstance(done, Unread) and done.kind == "timeout":
        why = f"NVIDIA's management library did not answer within {seconds:g} s"
        remedy = "a card may hang: look for Xid lines in `dmesg`, end what uses the GPU, and restart the machine"
    else:
        why = done.reason if isinstance(done, Unread) else _how_it_ended(done)
        remedy = "see whether `nvidia-smi -q` answers; another release of nvidia-ml-py may know this driver better"
    if reading is None:
        ended = "" if isinstance(done, Unread) else why
        return Reading(unavailable=Unavailable(why, remedy), broken=ended)
    return msgspec.structs.replace(reading, broken=why)


def _last(out: str) -> Reading | None:
    for line in reversed(out.splitlines()):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(line.encode(), type=Reading)
    return None


def _how_it_ended(done: Ran) -> str:
    """Say it with the call in which the library ended the process, as Python's fault handler names it."""
    call = re.search(r" in (nvml\w+)", done.err)
    how = f"signal {-done.code}" if done.code < 0 else f"exit code {done.code}"
    last = (done.err.strip().splitlines() or [""])[-1][-200:]
    where = f" in {call.group(1)}" if call else f": {last}" if last else ""
    return f"the process that asked NVIDIA's management library ended with {how}{where}"


def main() -> None:
    """Read, in a child, and write it to standard output as JSON, a line for each part that is known."""

    def put(reading: Reading) -> None:
        sys.stdout.write(msgspec.json.encode(reading).decode() + "\n")
        sys.stdout.flush()

    put(read(so_far=put))
