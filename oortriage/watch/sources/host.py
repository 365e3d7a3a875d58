"""Main memory of processes, and of the control group whose limit is nearest: /proc and /sys/fs/cgroup, Linux alone.

Fields: proc(5) for ``/proc/PID/status``; the kernel's admin guide for control groups, version 1 and 2.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from oortriage.watch.sample import GroupMemory, HostMemory

_FIELD = re.compile(rb"^(Name|VmRSS|RssAnon|VmSwap):\s*(.*?)\s*$", re.MULTILINE)
#: Version 1 says "no limit" as the largest multiple of a page that fits 63 bits.
_NO_LIMIT = 1 << 60
#: A status or statistics file has a few KiB; whatever else is there is not read whole.
_MOST_BYTES = 1 << 16


class HostSource:
    """Reads processes. ``proc`` and ``cgroup`` are the kernel's folders, which tests replace."""

    def __init__(self, proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> None:
        """Look nothing up yet."""
        self._proc, self._cgroup = proc, cgroup

    @property
    def initial_namespace(self) -> bool:
        """Whether the process numbers here are the machine's, as the driver states them.

        The first namespace's inode is fixed: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
        """
        try:
            return str((self._proc / "self/ns/pid").readlink()) == f"pid:[{0xEFFFFFFC}]"
        except OSError:
            return False

    def has(self, pid: int) -> bool:
        """Tell whether a process is there."""
        return (self._proc / str(pid)).is_dir()

    def is_same(self, pid: int, name: str) -> bool:
        """Tell whether a process of the driver's list is the one with that number here.

        In a container the driver's numbers may be the host's: then the names must agree.
        """
        folder = self._proc / str(pid)
        if self.initial_namespace:
            return folder.exists()
        command = _read(folder / "cmdline").split(b"\0")[0].decode("utf-8", "replace")
        return bool(name) and name in (
            PurePosixPath(command).name,
            _read(folder / "comm").decode("utf-8", "replace").strip(),
        )

    def read(self, pids: list[int]) -> tuple[list[HostMemory], list[GroupMemory]]:
        """Read processes and the groups they are in; a process that is gone is left out."""
        hosts, groups = [], {}
        known: dict[bytes, GroupMemory | None] = {}  # a server's workers are in one group: read once a sample
        for pid in pids:
            fields = dict(_FIELD.findall(_read(self._proc / str(pid) / "status")))
            if not fields:
                continue
            place = _read(self._proc / str(pid) / "cgroup")
            if place not in known:
                known[place] = self._group(place)
            group = known[place]
            if group:
                groups[group.path] = group
            hosts.append(
                HostMemory(
                    pid,
                    fields.get(b"Name", b"").decode("utf-8", "replace")[:256],
                    _kilobytes(fields.get(b"RssAnon")),
                    _kilobytes(fields.get(b"VmRSS")),
                    _kilobytes(fields.get(b"VmSwap")),
                    group.path if group else "",
                )
            )
        return hosts, [groups[path] for path in sorted(groups)]

    def with_children(self, pids: list[int]) -> list[int]:
        """Return the processes and all below them: a serving engine's workers are children of what was started."""
        below: dict[int, list[int]] = {}
        for stat in self._proc.glob("[0-9]*/stat"):
            # The command in brackets may hold anything, spaces and brackets too.
            after = _read(stat).rpartition(b")")[2].split()
            if len(after) > 1 and after[1].isdigit():
                below.setdefault(int(after[1]), []).append(int(stat.parent.name))
        found: list[int] = []
        waiting = list(pids)
        while waiting:
            pid = waiting.pop()
            if pid not in found:
                found.append(pid)
                waiting += below.get(pid, [])
        return sorted(found)

    def _group(self, place: bytes) -> GroupMemory | None:
        """Return the group that a process's ``cgroup`` file names, or the one above it whose limit is nearest."""
        lines = place.decode("utf-8", "replace").splitlines()
        found: list[GroupMemory] = []
        for line in lines:
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if controllers == "":
                found += self._up(self._cgroup, path, _version_2) or self._up(
                    self._cgroup / "unified", path, _version_2
                )
            elif "memory" in controllers.split(","):
                found += self._up(self._cgroup / "memory", path, _version_1)
        limited = [one for one in found if one.limit_bytes is not None]
        if limited:
            return min(limited, key=lambda one: (one.limit_bytes or 0) - (one.working_set_bytes or one.used_bytes or 0))
        return None

    def _up(self, root: Path, path: str, read: _Reader) -> list[GroupMemory]:
        """Read a group and those above it. In a container the path may be the host's: then only the root is there."""
        parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
        found = []
        for depth in range(len(parts), -1, -1):
            one = read(root.joinpath(*parts[:depth]), "/" + "/".join(parts[:depth]))
            if one:
                found.append(one)
        return found


class _Reader:
    """The files of one version of control groups."""

    def __init__(self, used: str, limit: str, cache: bytes, events: str) -> None:
        self._used, self._limit, self._events = used, limit, events
        self._cache = re.compile(rb"^" + cache + rb" (\d+)$", re.MULTILINE)

    def __call__(self, folder: Path, path: str) -> GroupMemory | None:
        used = _number(_read(folder / self._used))
        if used is None:
            return None
        limit = _number(_read(folder / self._limit))
        cache = self._cache.search(_read(folder / "memory.stat"))
        kills = re.search(rb"^oom_kill (\d+)$", _read(folder / self._events), re.MULTILINE)
        return GroupMemory(
            path[:1024],
            used,
            max(0, used - int(cache.group(1))) if cache else used,
            limit if limit is not None and limit < _NO_LIMIT else None,
            float(kills.group(1)) if kills else None,
        )


_version_2 = _Reader("memory.current", "memory.max", b"inactive_file", "memory.events")
_version_1 = _Reader("memory.usage_in_bytes", "memory.limit_in_bytes", b"total_inactive_file", "memory.oom_control")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return b""


def _number(text: bytes) -> int | None:
    """Read a count; ``max`` and an empty file are none."""
    text = text.strip()
    return int(text) if text.isdigit() and len(text) < 20 else None


def _kilobytes(text: bytes | None) -> int | None:
    number = _number((text or b"").removesuffix(b"kB"))
    return None if number is None else number * 1024
