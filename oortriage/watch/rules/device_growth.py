"""A device fills up, and no process that the driver names explains it."""

from __future__ import annotations

from oortriage.watch.rules.growing import numbers, told
from oortriage.watch.view import Finding, View
from oortriage.watch.words import rate

CODE = "WD102"
TITLE = "A device fills up and no named process explains it"
MEANING = (
    "The device's memory in use grows steadily, and the processes that the driver names account for less than four "
    "fifths of it. In a container the driver may name no process, or none of those outside it: look with "
    "`nvidia-smi` on the host."
)
#: Share of the device's slope that named processes must account for, to be the explanation.
_EXPLAINED = 0.8


def check(view: View) -> list[Finding]:
    """Find devices whose steady growth is not that of processes already told."""
    found = []
    for one in view.of("device"):
        if one.trend.kind != "steady":
            continue
        named = sum(
            process.trend.slope
            for process in view.of("process")
            if process.key.gpu == one.key.gpu and process.trend.kind == "steady"
        )
        if named >= _EXPLAINED * one.trend.slope:
            continue
        by = f"processes that the driver names account for {rate(named)}" if named > 0 else "no process is named for it"
        found.append(
            Finding(
                CODE,
                f"gpu {one.key.gpu}",
                f"memory in use on GPU {one.key.gpu} {told(one, 'on it')}; {by}",
                {**numbers(one), "named_bytes_per_s": named},
                gpu=one.key.gpu,
            )
        )
    return found
