"""What was read at one moment; written to a recording as it is, and read back from one."""

from __future__ import annotations

from typing import Annotated

import msgspec

#: Bounds that keep a recording from a hostile source within what arithmetic on it can hold.
Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]
Count = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Pid = Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]
Name = Annotated[str, msgspec.Meta(max_length=4096)]


class ProcessMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Device memory of one process, in bytes; None where the driver does not tell."""

    pid: Pid
    name: Name = ""
    used_bytes: Bytes | None = None


class DeviceMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One device, or one MIG instance of it. ``label`` is the driver's number: ``0``, an instance ``0:7``. Bytes."""

    label: Name
    uuid: Name = ""
    name: Name = ""
    total_bytes: Bytes | None = None
    used_bytes: Bytes | None = None
    free_bytes: Bytes | None = None
    processes: Annotated[tuple[ProcessMemory, ...], msgspec.Meta(max_length=4096)] = ()


class HostMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """Main memory of one process, in bytes.

    ``anonymous_bytes`` (RssAnon) is what a leak grows: resident pages that no file backs. ``group`` names the
    control group whose limit is nearest.
    """

    pid: Pid
    name: Name = ""
    anonymous_bytes: Bytes | None = None
    resident_bytes: Bytes | None = None
    swap_bytes: Bytes | None = None
    group: Name = ""


class GroupMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """A control group with a limit. ``working_set_bytes`` is what is used less the file pages that can be dropped."""

    path: Name
    used_bytes: Bytes | None = None
    working_set_bytes: Bytes | None = None
    limit_bytes: Bytes | None = None
    oom_kills: Count | None = None


class EngineLoad(msgspec.Struct, frozen=True, omit_defaults=True):
    """What vLLM's metrics endpoint says; several engines behind it are joined.

    ``kv_usage`` is the fullest engine's share of its KV blocks, 0 to 1; the rest are sums over the engines.
    ``problem`` says why it could not be read.
    """

    kv_usage: Share | None = None
    preemptions: Count | None = None
    running: Count | None = None
    waiting: Count | None = None
    problem: Name = ""


class Sample(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="sample"):
    """Everything read at one moment. ``time_s`` is in seconds since 1970, and never runs backwards within a run.

    ``family`` holds the processes asked for and their children; empty when none were asked for.
    """

    time_s: Seconds
    devices: Annotated[tuple[DeviceMemory, ...], msgspec.Meta(max_length=4096)] = ()
    hosts: Annotated[tuple[HostMemory, ...], msgspec.Meta(max_length=4096)] = ()
    groups: Annotated[tuple[GroupMemory, ...], msgspec.Meta(max_length=4096)] = ()
    engine: EngineLoad | None = None
    problems: Annotated[tuple[Name, ...], msgspec.Meta(max_length=4096)] = ()
    family: Annotated[tuple[Pid, ...], msgspec.Meta(max_length=4096)] = ()


class Settings(msgspec.Struct, frozen=True):
    """How samples are judged.

    ``window_s``: a leak must grow through all of it; a window six times as long finds slower ones.
    ``min_growth_bytes``: less growth in a window is no leak. ``horizon_s``: a limit that is farther away is no alarm.
    ``pids``: the processes asked for; all when empty.
    """

    interval_s: Annotated[float, msgspec.Meta(ge=0.01, le=86400)] = 5.0
    window_s: Annotated[float, msgspec.Meta(ge=1, le=1e7)] = 600.0
    min_growth_bytes: Bytes = 64 << 20
    horizon_s: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 7200.0
    pids: Annotated[tuple[Pid, ...], msgspec.Meta(max_length=4096)] = ()

    @property
    def bin_s(self) -> float:
        """Width of the bins that samples are gathered in, in seconds: 60 to a window, none narrower than a sample."""
        return max(self.window_s / 60, self.interval_s)

    @property
    def lookback_s(self) -> float:
        """How long a state must last to be told (KV pressure, a full group), in seconds: a fifth of the window."""
        return self.window_s / 5


class Header(msgspec.Struct, frozen=True, tag_field="kind", tag="header"):
    """The first line of a recording: which run, and how it was judged."""

    schema_version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    run: Name
    version: Name
    settings: Settings
