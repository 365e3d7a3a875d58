"""Messages without figures whose traceback says which memory it was: pinned host memory, mostly."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from oortriage.evidence.rule import Rule
from oortriage.intake.log import Log
from oortriage.triage.root import Root, raised_with

#: Frames under which a bare "CUDA error: out of memory" is the host refusing page-locked memory.
_PINNING = re.compile(r"pin_memory|HostAlloc|pinned", re.IGNORECASE)
#: The rule for page-locked memory.
_PINNED_RULE = "HM322"


def reclassify(log: Log, root: Root, rules: Sequence[Rule]) -> Root:
    """Give a bare CUDA error the rule of the resource that its frames name."""
    event = root.event
    if event is None or event.rule.resource != "device_memory" or event.match.numbers.get("requested_bytes"):
        return root
    raised = raised_with(log, event)
    pinned = next((rule for rule in rules if rule.code == _PINNED_RULE), None)
    if raised is None or pinned is None:
        return root
    if any(_PINNING.search(f"{frame.function} {frame.source}") for frame in raised.frames[-4:]):
        event.rule = pinned
        return msgspec.structs.replace(root, event=event)
    return root
