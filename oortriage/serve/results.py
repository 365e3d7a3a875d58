"""What was analyzed, in memory: so many results and no older, and gone when the server ends."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from oortriage.replay.experiment import Experiment
from oortriage.serve.limits import Limits
from oortriage.serve.run import Run
from oortriage.triage.diagnosis import Diagnosis


class Result:
    """One log's diagnosis, and the experiment that was run on it."""

    def __init__(self, name: str, diagnosis: Diagnosis, title: str, verdict: str, made: float) -> None:
        """Keep the diagnosis under a random name; ``made`` is on the clock of the store, in seconds."""
        self.id = secrets.token_urlsafe(12)
        self.name = name
        self.diagnosis = diagnosis
        self.title = title
        self.verdict = verdict
        self.made = made
        self.run: Run | None = None
        self._earlier: Experiment | None = None

    @property
    def experiment(self) -> Experiment | None:
        """The last experiment that was done; one that is stopped does not take it away."""
        return (self.run.experiment if self.run is not None else None) or self._earlier

    def start(self) -> Run:
        """Begin another experiment."""
        self._earlier = self.experiment
        self.run = Run()
        return self.run

    def stop(self) -> None:
        """End the experiment that runs, if one does."""
        if self.run is not None:
            self.run.stop()


class Results:
    """The results of one server; used from its event loop alone."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing. ``clock`` gives seconds."""
        self._limits = limits
        self._clock = clock
        self._kept: dict[str, Result] = {}

    def add(self, name: str, diagnosis: Diagnosis, title: str, verdict: str) -> Result:
        """Keep a diagnosis; the oldest goes where there are too many."""
        self.forget_old()
        while len(self._kept) >= self._limits.results:
            self.forget(next(iter(self._kept)))
        result = Result(name, diagnosis, title, verdict, self._clock())
        self._kept[result.id] = result
        return result

    def find(self, key: str) -> Result | None:
        """Return a result that is still kept."""
        self.forget_old()
        return self._kept.get(key)

    def all(self) -> list[Result]:
        """Return what is kept, the newest first."""
        self.forget_old()
        return list(reversed(self._kept.values()))

    def forget(self, key: str) -> None:
        """Drop a result, and end what runs on it."""
        if (result := self._kept.pop(key, None)) is not None:
            result.stop()

    def forget_old(self) -> None:
        """Drop what is too old."""
        oldest = self._clock() - self._limits.age_seconds
        for key in [key for key, one in self._kept.items() if one.made < oldest]:
            self.forget(key)

    def forget_all(self) -> None:
        """Drop everything."""
        for key in list(self._kept):
            self.forget(key)
