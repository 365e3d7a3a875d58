"""Resources whose rule says all there is to say: host memory, /dev/shm, contexts, launches."""

from __future__ import annotations

from oortriage.evidence.values import format_bytes
from oortriage.triage.case import Case, Finding
from oortriage.triage.diagnosis import RuledOut

_NOT_THE_CARD = {
    "host_memory": "the process was killed or refused by the host; no GPU allocation failed",
    "host_shm": "the message names the host's shared memory (/dev/shm), not the GPU's",
    "device_context": "no usable device context was made, so nothing was allocated on the card",
    "threads": "the launch asks for more threads or registers than a block may have; no memory ran out",
    "registers": "the compiler ran out of registers; no memory ran out",
    "tensor_memory": "the unit is columns of tensor memory, not bytes of the card",
}


def examine(case: Case) -> Finding:
    """State the figures the message has; remedies come from the rule itself."""
    rule = case.event.rule
    finding = Finding(cause=rule.cause)
    numbers = case.numbers
    details = []
    for name, unit in (("required", "bytes"), ("required", "columns"), ("required", "threads")):
        need, limit = numbers.get(f"{name}_{unit}"), numbers.get(f"limit_{unit}")
        if need is not None and limit is not None:
            details.append(f"{int(need):,} of {int(limit):,} {unit}")
    if (wanted := numbers.get("requested_bytes")) is not None:
        free = numbers.get("available_bytes")
        have = f", {format_bytes(int(free))} available" if free is not None else ""
        details.append(f"{format_bytes(int(wanted))} requested{have}")
    finding.summary = rule.title + (f" ({'; '.join(details)})." if details else ".")
    if rule.resource in _NOT_THE_CARD:
        finding.ruled_out.append(RuledOut("device_memory", _NOT_THE_CARD[rule.resource], case.event.line.number))
    if rule.resource == "tensor_memory":
        finding.ruled_out.append(
            RuledOut(
                "shared_memory",
                "tensor memory is a resource of its own on datacenter Blackwell",
                case.event.line.number,
            )
        )
    return finding
