"""A control group stays next to its limit."""

from __future__ import annotations

from oortriage.watch.view import Finding, View
from oortriage.watch.words import duration, size

CODE = "WH303"
TITLE = "A control group is full"
MEANING = (
    "The working set of a control group was above 95 % of its limit for a fifth of the window. The next large "
    "allocation gets a process killed (exit 137). Page cache is not counted: it gives way."
)
_FULL = 0.95


def check(view: View) -> list[Finding]:
    """Find groups that were above the mark through the whole lookback."""
    found = []
    for path, readings in sorted(view.groups.items()):
        shares = [
            one.working_set_bytes / one.limit_bytes for _, one in readings if one.limit_bytes and one.working_set_bytes
        ]
        if len(shares) < 3 or len(shares) < len(readings) or min(shares) < _FULL:
            continue
        span = readings[-1][0] - readings[0][0]
        if span < view.settings.lookback_s * 0.8:
            continue
        last = readings[-1][1]
        limit, used = last.limit_bytes or 0, last.working_set_bytes or 0
        found.append(
            Finding(
                CODE,
                f"group {path}",
                f"control group {path} used {min(shares):.0%} or more of its limit for {duration(span)}: "
                f"{size(used)} of {size(limit)}, {size(limit - used)} left",
                {
                    "used_bytes": used,
                    "limit_bytes": limit,
                    "left_bytes": limit - used,
                    "least_ratio": min(shares),
                    "span_s": span,
                },
            )
        )
    return found
