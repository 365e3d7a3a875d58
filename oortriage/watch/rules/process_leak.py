"""Device memory of a process grows without end."""

from __future__ import annotations

from oortriage.watch.rules.growing import numbers, told, who
from oortriage.watch.view import Finding, View

CODE = "WD101"
TITLE = "A process's device memory grows without end"
MEANING = (
    "The device memory of a watched process rose in every part of the window, in many small rises, with a slope whose "
    "95 % interval lies above zero. A start (weights, KV pool, graphs) comes in few jumps and ends, so it does not "
    "fire. Take a PyTorch memory snapshot of the process while it grows: it names what holds the memory."
)


def check(view: View) -> list[Finding]:
    """Find watched processes whose device memory grows steadily."""
    return [
        Finding(
            CODE,
            f"gpu {one.key.gpu} pid {one.key.pid}",
            f"device memory of {who(one)} on GPU {one.key.gpu} {told(one, f'on GPU {one.key.gpu}')}",
            numbers(one),
            gpu=one.key.gpu,
            pid=one.key.pid,
        )
        for one in view.of("process")
        if one.asked_for and one.trend.kind == "steady"
    ]
