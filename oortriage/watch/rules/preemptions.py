"""vLLM takes blocks away from running requests."""

from __future__ import annotations

from itertools import pairwise

from oortriage.watch.rules.pool import device_memory
from oortriage.watch.view import Finding, View
from oortriage.watch.words import duration

CODE = "WK202"
TITLE = "Requests are preempted for lack of KV blocks"
MEANING = (
    "vLLM's preemption counter rose in at least two samples of a fifth of the window. Each preempted request is "
    "computed again from its prompt. V1 up to 0.11.0 prints nothing about it. More KV blocks, or a smaller "
    "--max-num-seqs."
)


def check(view: View) -> list[Finding]:
    """Find a preemption counter that goes on rising."""
    counts = [(time, one.preemptions) for time, one in view.engine if one.preemptions is not None]
    rises = [later[1] - earlier[1] for earlier, later in pairwise(counts) if later[1] > earlier[1]]
    if len(rises) < 2:
        return []
    span, count = counts[-1][0] - counts[0][0], sum(rises)
    return [
        Finding(
            CODE,
            "engine",
            f"{count:.0f} preemptions in {duration(span)} ({count / span * 60:.1f} a minute): running requests lose "
            f"their KV blocks and are computed again; {device_memory(view)}",
            {"preemptions": count, "span_s": span, "preemptions_per_s": count / span},
        )
    ]
