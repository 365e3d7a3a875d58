"""Main memory of a process grows without end."""

from __future__ import annotations

from oortriage.watch.rules.growing import numbers, told, who
from oortriage.watch.view import Finding, View

CODE = "WH301"
TITLE = "A process's main memory grows without end"
MEANING = (
    "The anonymous resident memory (RssAnon: no file behind it, so no cache) of a process rose steadily through the "
    "whole window. What ends it is the machine's memory or the control group's limit: a kill without a message."
)


def check(view: View) -> list[Finding]:
    """Find processes whose anonymous memory grows steadily."""
    return [
        Finding(
            CODE,
            f"pid {one.key.pid}",
            f"main memory of {who(one)} {told(one, 'within its limit')}",
            numbers(one),
            pid=one.key.pid,
        )
        for one in view.of("host")
        if one.trend.kind == "steady"
    ]
