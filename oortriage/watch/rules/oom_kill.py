"""The kernel killed a process in a watched control group."""

from __future__ import annotations

from oortriage.watch.view import Finding, View

CODE = "WH304"
TITLE = "The kernel killed a process for lack of memory"
MEANING = (
    "The oom_kill counter of a watched control group rose while this ran: the group reached its limit and the kernel "
    "ended a process in it with SIGKILL (exit 137)."
)


def check(view: View) -> list[Finding]:
    """Find groups with kills since the run began."""
    return [
        Finding(
            CODE,
            f"group {path}",
            f"control group {path}: killed by the kernel for lack of memory: {count:.0f}",
            {"kills": count},
        )
        for path, count in sorted(view.oom_kills.items())
        if count > 0
    ]
