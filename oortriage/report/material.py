"""What a report is made of: the diagnosis, and what was run on top of it."""

from __future__ import annotations

import msgspec

from oortriage.fix.verify import Verification
from oortriage.replay.experiment import Experiment
from oortriage.replay.reproduce import Reproduction
from oortriage.triage.diagnosis import Diagnosis


class Material(msgspec.Struct, frozen=True):
    """All that a report can show; what was not run is None, and the report says so.

    ``commands`` are those that made each part, to be run again; ``environment`` is the machine that wrote the report.
    """

    diagnosis: Diagnosis
    reproduction: Reproduction | None = None
    experiment: Experiment | None = None
    verification: Verification | None = None
    commands: list[str] = []
    environment: dict[str, str] = {}
