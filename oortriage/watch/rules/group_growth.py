"""A control group grows towards its limit."""

from __future__ import annotations

from oortriage.watch.rules.growing import numbers, told
from oortriage.watch.view import Finding, View
from oortriage.watch.words import duration, size

CODE = "WH302"
TITLE = "A control group reaches its memory limit soon"
MEANING = (
    "The working set of a control group (memory in use less file pages that can be dropped) grows steadily and "
    "reaches the limit within --horizon. Then the kernel kills a process in it (exit 137). Raise the limit, or find "
    "what grows."
)


def check(view: View) -> list[Finding]:
    """Find groups that reach their limit within the horizon."""
    found = []
    for one in view.of("group"):
        full = one.full_in_s
        if full is None or full > view.settings.horizon_s or one.limit_bytes is None:
            continue
        found.append(
            Finding(
                CODE,
                f"group {one.key.path}",
                f"control group {one.key.path} (limit {size(one.limit_bytes)}) {told(one, 'under the limit')}, "
                f"within the horizon of {duration(view.settings.horizon_s)}",
                {**numbers(one), "limit_bytes": one.limit_bytes},
            )
        )
    return found
