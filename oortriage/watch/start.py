"""What a run begins with: its settings, and the sources that are there."""

from __future__ import annotations

from typing import Any

import msgspec

from oortriage.errors import OortriageError, UsageError
from oortriage.gpu.nvml_trouble import Unavailable
from oortriage.watch.sample import Settings
from oortriage.watch.sources.engine import EngineSource
from oortriage.watch.sources.host import HostSource
from oortriage.watch.sources.nvml import missing, open_nvml
from oortriage.watch.sources.sampler import Sampler

#: Bins in a window, at least: fewer give no interval worth the name.
_LEAST_BINS = 15


class NothingToWatchError(OortriageError):
    """There is no device, and neither a process nor an endpoint was named."""

    exit_code = 3


def settings_of(base: Settings | None, wanted: dict[str, Any]) -> Settings:
    """Fill in what was not asked for; ``base`` are a recording's settings.

    The interval follows a short window, and the window a long interval, so that a window holds 60 samples.

    Raises:
        UsageError: the window is too short for the interval.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    default = base or Settings()
    if base is None and "window_s" in given:
        given.setdefault("interval_s", min(default.interval_s, max(0.1, given["window_s"] / 60)))
    if base is None and "interval_s" in given:
        given.setdefault("window_s", max(default.window_s, 60 * given["interval_s"]))
    settings = msgspec.structs.replace(default, **given)
    if not (0.01 <= settings.interval_s <= 86400 and 1 <= settings.window_s <= 1e7):
        raise UsageError("--interval: 10ms to 1 day; --window: 1 s to 115 days")
    if settings.window_s / settings.interval_s < _LEAST_BINS:
        raise UsageError(
            f"--window {settings.window_s:g} s holds fewer than {_LEAST_BINS} samples of --interval "
            f"{settings.interval_s:g} s: a longer window or a shorter interval"
        )
    return settings


def open_sampler(
    settings: Settings, gpus: list[str], metrics: str, nvml: Any = None, host: HostSource | None = None
) -> tuple[Sampler, list[str]]:
    """Open the sources; return what reads them, and notes on those that are missing.

    Raises:
        UsageError: a device that is not there, an address that is none, prometheus-client missing.
        NothingToWatchError: nothing is there to be read.
    """
    notes = []
    engine = EngineSource(metrics) if metrics else None
    host = host or HostSource()
    notes += [
        f"process {pid} is not in /proc: its main memory is not read" for pid in settings.pids if not host.has(pid)
    ]
    devices = open_nvml(gpus, nvml)
    if isinstance(devices, Unavailable):
        reason = f"device memory is not watched: {devices.reason}; {devices.remedy}"
        if gpus or not (engine or any(map(host.has, settings.pids))):
            why = f"{notes[0]}; {reason}" if notes else f"{reason}. Without a device, say --pid or --metrics"
            raise NothingToWatchError(reason if gpus else why)
        notes.append(reason)
        return Sampler(None, host, engine, list(settings.pids)), notes
    unknown = missing(devices, gpus)
    if unknown:
        have = ", ".join(open_labels(nvml))
        devices.close()
        raise UsageError(f"--gpu {unknown[0]}: no such device; there are {have}")
    return Sampler(devices, host, engine, list(settings.pids)), notes


def open_labels(nvml: Any = None) -> list[str]:
    """Return the labels of the devices there are."""
    every = open_nvml([], nvml)
    if isinstance(every, Unavailable):
        return []
    every.close()
    return every.labels
