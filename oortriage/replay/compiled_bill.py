"""Adds the compiler's own bill to a diagnosis, next to the one that arithmetic finds."""

from __future__ import annotations

import msgspec

from oortriage.errors import OortriageError
from oortriage.ledger.allocation import Buffer, Ledger, covered
from oortriage.replay.options import Options
from oortriage.replay.reproduce import Reproduction, reproduce
from oortriage.replay.selection import select
from oortriage.triage.diagnosis import BillTerm, BillView, Diagnosis


def with_compiled_bill(diagnosis: Diagnosis, options: Options | None = None) -> Diagnosis:
    """Compile the failing kernel again and return the diagnosis with the bill; with a note where that is impossible.

    Args:
        diagnosis: of a log; other resources than shared memory are returned as they are.
        options: what the user adds to the log's facts (``--triton``, ``--source``).
    """
    if diagnosis.resource != "shared_memory":
        return diagnosis
    try:
        result = reproduce(select(options or Options(), diagnosis))
    except OortriageError as problem:
        return _noted(diagnosis, f"no compiled bill: {problem}")
    if result.required_bytes is None:
        reason = result.failure.message if result.failure else "no kernel was launched"
        return _noted(diagnosis, f"no compiled bill: {reason}")
    return msgspec.structs.replace(diagnosis, compiled_bill=bill_of(result))


def _noted(diagnosis: Diagnosis, note: str) -> Diagnosis:
    return msgspec.structs.replace(diagnosis, notes=[*diagnosis.notes, note])


def bill_of(result: Reproduction) -> BillView:
    """Write a reproduction as a bill: buffers in the order they count, each byte once, so that it adds up."""
    terms = [
        BillTerm(buffer.name, _expression(buffer, counted), counted)
        for buffer, counted in _counted(result.ledger)
        if counted
    ]
    if result.gap_bytes:
        terms.append(BillTerm("gaps", "gaps between buffers", result.gap_bytes))
    words = {
        "reproduced": "the figure that the log prints, to the byte",
        "reproduced_with_other_settings": "the figure that the log prints, with settings it does not state",
        "not_reproduced": f"not the {result.printed_bytes or 0:,} that the log prints",
    }
    return BillView(
        basis="compiler",
        total_bytes=result.required_bytes or 0,
        terms=terms,
        settings={name: value for name, value in result.constants.items() if type(value) is int},
        note=f"allocated by Triton {result.triton} for {result.target} from {result.source}: "
        f"{words.get(result.verdict, 'no printed figure to hold it against')}",
        alternatives=max(0, len(result.exact_settings) - 1),
    )


def _counted(ledger: Ledger) -> list[tuple[Buffer, int]]:
    """Give each buffer the bytes that no larger one before it stands in."""
    counted, before = [], list[Buffer]()
    for buffer in sorted(ledger.buffers, key=lambda one: (-one.bytes, one.offset)):
        counted.append((buffer, covered([*before, buffer]) - covered(before)))
        before.append(buffer)
    return counted


def _expression(buffer: Buffer, counted: int) -> str:
    shape = "x".join(str(length) for length in buffer.shape)
    copies = f"{buffer.copies} copies of " if buffer.copies > 1 else ""
    part = f", {counted:,} of them its own" if counted != buffer.bytes else ""
    return f"{buffer.name} {copies}{shape}x{buffer.dtype}{part}"
