"""What tests ask of the processes around them."""

from __future__ import annotations

import os
from pathlib import Path


def _status(pid: int) -> tuple[str, int]:
    """Return the state and the parent of a process; an empty state when it is not there."""
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return "", 0
    return state, int(parent)


def is_alive(pid: int) -> bool:
    """Tell whether a process still does anything; one that nobody has waited for does not."""
    return _status(pid)[0] not in ("", "Z", "X")


def zombies() -> list[int]:
    """Return our own children that ended and were not waited for."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _status(pid) == ("Z", os.getpid())]
