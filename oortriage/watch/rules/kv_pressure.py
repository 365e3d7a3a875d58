"""vLLM's KV cache is full and requests wait for it."""

from __future__ import annotations

from statistics import median

from oortriage.watch.rules.pool import device_memory
from oortriage.watch.view import Finding, View
from oortriage.watch.words import duration

CODE = "WK201"
TITLE = "The KV cache is full and requests wait"
MEANING = (
    "vLLM reported a KV cache above 95 % while requests waited, in nine of ten samples of a fifth of the window. That "
    "is load, not a leak: vLLM takes its pool once at the start, and its device memory stays flat. More KV blocks (a "
    "smaller --max-model-len does not give any; a higher --gpu-memory-utilization, more cards or fp8 KV do), or fewer "
    "requests at a time (--max-num-seqs)."
)
_FULL, _OFTEN = 0.95, 0.9


def check(view: View) -> list[Finding]:
    """Find a full cache with waiting requests, over the lookback."""
    readings = [(time, one) for time, one in view.engine if one.kv_usage is not None and one.waiting is not None]
    if len(readings) < 3:
        return []
    span = readings[-1][0] - readings[0][0]
    full = [one for _, one in readings if (one.kv_usage or 0) >= _FULL and (one.waiting or 0) >= 1]
    if span < view.settings.lookback_s * 0.8 or len(full) < _OFTEN * len(readings):
        return []
    usage = median(one.kv_usage or 0 for one in full)
    waiting = median(one.waiting or 0 for one in full)
    return [
        Finding(
            CODE,
            "engine",
            f"KV cache at {usage:.0%} for {duration(span)} with {waiting:.0f} requests waiting: pressure on the cache; "
            f"{device_memory(view)}",
            {"kv_usage_ratio": usage, "waiting": waiting, "span_s": span},
        )
    ]
