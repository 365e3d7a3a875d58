"""A process that nobody asked about grows on a device that is watched."""

from __future__ import annotations

from oortriage.watch.rules.growing import numbers, told, who
from oortriage.watch.view import Finding, View

CODE = "WD103"
TITLE = "Another process grows on the device"
MEANING = (
    "With --pid: a process that was not asked for takes ever more of a device that a watched one is on. The watched "
    "one runs out of memory without having grown. Move one of the two, or end the other."
)


def check(view: View) -> list[Finding]:
    """Find processes outside --pid that grow steadily."""
    return [
        Finding(
            CODE,
            f"gpu {one.key.gpu} pid {one.key.pid}",
            f"another process grows on GPU {one.key.gpu}: {who(one)} {told(one, f'on GPU {one.key.gpu}')}",
            numbers(one),
            gpu=one.key.gpu,
            pid=one.key.pid,
        )
        for one in view.of("process")
        if not one.asked_for and one.trend.kind == "steady"
    ]
