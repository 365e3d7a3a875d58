"""Why NVIDIA's management library does not answer, and what to do about it, as values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

Place = Literal["machine", "container", "wsl2"]
Kind = Literal[
    "no_module", "no_library", "no_driver", "mismatch", "no_permission", "gpu_lost", "no_device", "unsupported", "other"
]


class Unavailable(msgspec.Struct, frozen=True):
    """The devices cannot be read: why, and what would help."""

    reason: str
    remedy: str
    kind: Kind = "other"


#: Codes of nvml.h (nvmlReturn_t), read 2026-11-29 in the CUDA 13 header that nvidia-ml-py is made from.
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, TIMEOUT = 3, 4, 6, 9, 10
LIBRARY_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, OPERATING_SYSTEM, MISMATCH, GPU_NOT_FOUND = 12, 15, 16, 17, 18, 28

_KINDS: dict[int, Kind] = {
    NO_PERMISSION: "no_permission",
    OPERATING_SYSTEM: "no_permission",
    DRIVER_NOT_LOADED: "no_driver",
    LIBRARY_NOT_FOUND: "no_library",
    GPU_IS_LOST: "gpu_lost",
    RESET_REQUIRED: "gpu_lost",
    MISMATCH: "mismatch",
    GPU_NOT_FOUND: "no_device",
}
_REASONS: dict[Kind, str] = {
    "no_permission": "NVIDIA's driver is there, but this user may not ask it",
    "no_driver": "NVIDIA's driver is not loaded",
    "no_library": "NVIDIA's management library (libnvidia-ml) is not there",
    "gpu_lost": "a GPU has fallen off the bus, or must be reset",
    "mismatch": "the driver in the kernel and the library beside it are of two releases",
    "no_device": "there is no NVIDIA GPU",
}
_CONTAINER = (
    "start the container with its GPUs: `docker run --gpus all`, with NVIDIA's container toolkit on the host and "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility; in Kubernetes ask for nvidia.com/gpu"
)
_WSL = (
    "WSL2 uses the driver of Windows: install NVIDIA's driver there, none inside WSL, and see that "
    "/usr/lib/wsl/lib is among the library folders"
)
_REMEDIES: dict[Kind, str] = {
    "no_permission": "run as a user who may open /dev/nvidiactl and /dev/nvidia0 (a group such as video, or root)",
    "no_driver": "install NVIDIA's driver and load it (`sudo modprobe nvidia`); after an update restart the machine",
    "no_library": "install NVIDIA's driver; its package holds libnvidia-ml.so.1",
    "gpu_lost": "look for an Xid line in `dmesg`, end what uses the GPU, and restart the machine",
    "mismatch": "restart the machine (or unload and load the nvidia modules): the driver was updated while in use",
    "no_device": "check with `lspci | grep -i nvidia` that the card is seen at all",
}
_IN_CONTAINER: dict[Kind, str] = {
    "no_permission": f"the container may not open the GPU's device files; {_CONTAINER}",
    "no_driver": _CONTAINER,
    "no_library": _CONTAINER,
    "no_device": _CONTAINER,
    "mismatch": "the host's driver was updated: start the container again; if that does not help, restart the host",
}
_IN_WSL: dict[Kind, str] = {
    "no_permission": _WSL,
    "no_driver": _WSL,
    "no_library": _WSL,
    "no_device": _WSL,
    "mismatch": "run `wsl --shutdown` in Windows and start again: the Windows driver was updated",
    "gpu_lost": "run `wsl --shutdown` in Windows; if that does not help, restart Windows",
}


def unavailable(problem: Exception, place: Place) -> Unavailable:
    """Turn what NVML raised into a reason and a remedy for this kind of place."""
    kind = _KINDS.get(code_of(problem), "other")
    said = said_by(problem)
    if kind == "other":
        return Unavailable(
            f"NVIDIA's management library does not answer: {said}",
            "see whether `nvidia-smi` answers; if it does not either, restart the driver or the machine",
        )
    by_place = {"container": _IN_CONTAINER, "wsl2": _IN_WSL}.get(place, {})
    return Unavailable(f"{_REASONS[kind]} ({said})", by_place.get(kind, _REMEDIES[kind]), kind)


def no_module() -> Unavailable:
    """Say that the Python module is missing."""
    return Unavailable("the Python module pynvml is missing", "`pip install nvidia-ml-py`", "no_module")


def no_device(place: Place) -> Unavailable:
    """Say that the driver answers, and has no GPU."""
    remedy = {"container": _CONTAINER, "wsl2": _WSL}.get(place, _REMEDIES["no_device"])
    return Unavailable("NVIDIA's driver answers, and has no GPU", remedy, "no_device")


def no_such_system() -> Unavailable:
    """Say that this system has no such library."""
    return Unavailable(
        "NVIDIA's management library does not exist on macOS",
        "run this on the machine with the GPU; `oortriage reproduce` needs none",
        "unsupported",
    )


def code_of(problem: Exception) -> int:
    """Return NVML's code of an exception; -1 where it has none."""
    value: Any = getattr(problem, "value", None)
    return value if isinstance(value, int) else -1


def said_by(problem: Exception) -> str:
    """Return what an exception says, in one line; never fail over it."""
    try:
        text = str(problem)
    except Exception:  # noqa: BLE001 (NVML's own exceptions ask the library for their text)
        text = ""
    return " ".join(text.split()) or type(problem).__name__


def this_place(root: Path = Path("/")) -> Place:
    """Tell WSL2 and containers from a machine of its own."""
    version = _text(root / "proc" / "version").lower()
    if "microsoft" in version:
        return "wsl2"
    marks = (root / ".dockerenv", root / "run" / ".containerenv")
    groups = _text(root / "proc" / "1" / "cgroup")
    named = any(word in groups for word in ("docker", "kubepods", "containerd", "lxc", "libpod"))
    return "container" if named or any(_there(mark) for mark in marks) else "machine"


def on_macos() -> bool:
    """Tell whether this is a Mac."""
    return sys.platform == "darwin"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
