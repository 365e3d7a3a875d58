"""One sample from all sources, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable

from oortriage.watch.sample import DeviceMemory, Sample
from oortriage.watch.sources.engine import EngineSource
from oortriage.watch.sources.host import HostSource
from oortriage.watch.sources.nvml import NvmlSource

#: Children are looked for so often, in seconds: going through /proc costs more than a sample.
_FAMILY_EVERY_S = 10.0


class Sampler:
    """Reads the sources there are. Times come from a clock that never runs backwards, set once to the time of day."""

    def __init__(
        self,
        devices: NvmlSource | None,
        host: HostSource | None,
        engine: EngineSource | None,
        pids: list[int],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``pids`` are the processes asked for; without any, those on the devices are read in main memory too."""
        self._devices, self._host, self._engine, self._pids = devices, host, engine, pids
        self._clock, self._offset = clock, wall() - clock()
        self._family: list[int] = []
        self._family_until = float("-inf")
        self._same: dict[tuple[int, str], bool] = {}

    def read(self) -> Sample:
        """Take a sample."""
        devices, problems = self._devices.read() if self._devices else ([], [])
        hosts, groups = self._host.read(self._host_pids(devices)) if self._host else ([], [])
        return Sample(
            time_s=self._clock() + self._offset,
            family=tuple(self._family) if self._pids else (),
            devices=tuple(devices),
            hosts=tuple(hosts),
            groups=tuple(groups),
            engine=self._engine.read() if self._engine else None,
            problems=tuple(problems),
        )

    def _host_pids(self, devices: list[DeviceMemory]) -> list[int]:
        if self._pids and self._host:
            if self._clock() >= self._family_until:
                self._family = self._host.with_children(self._pids)
                self._family_until = self._clock() + _FAMILY_EVERY_S
            return self._family
        found = {}
        for device in devices:
            for process in device.processes:
                key = (process.pid, process.name)
                if key not in self._same and self._host:
                    if len(self._same) > 4096:
                        self._same.clear()
                    self._same[key] = self._host.is_same(*key)
                if self._same.get(key):
                    found[process.pid] = True
        return sorted(found)

    def close(self) -> None:
        """Let the driver's library go."""
        if self._devices:
            self._devices.close()
