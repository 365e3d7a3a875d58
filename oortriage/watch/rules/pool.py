"""What the device memory does while the KV cache is under pressure: the other half of telling pressure from a leak."""

from __future__ import annotations

from oortriage.watch.view import View
from oortriage.watch.words import duration, rate, size


def device_memory(view: View) -> str:
    """Say in a clause whether the watched processes' device memory grew meanwhile."""
    processes = [one for one in view.of("process") if one.asked_for] or view.of("device")
    if not processes:
        return "device memory was not read"
    growing = [one for one in processes if one.trend.kind == "steady"]
    if growing:
        most = max(growing, key=lambda one: one.trend.slope)
        return (
            f"device memory grows as well, by {rate(most.trend.slope)}: that is another matter, told as WD101 or WD102"
        )
    judged = [one for one in processes if one.trend.kind != "young"]
    if not judged:
        return "device memory has not been watched for a whole window yet"
    moved = max(abs(one.trend.rise_bytes) for one in judged)
    return f"device memory is no leak (it moved {size(moved)} in {duration(judged[0].trend.span_s)})"
