"""Logs without a proved resource failure: clean, survived, unrelated, talked about, or masked."""

from __future__ import annotations

import re

import msgspec

from oortriage.evidence.fact import Fact
from oortriage.evidence.rule import Resource
from oortriage.intake.log import Log
from oortriage.triage import view
from oortriage.triage.case import Facts
from oortriage.triage.derived import derive
from oortriage.triage.diagnosis import SCHEMA_VERSION, Diagnosis, Evidence, Status
from oortriage.triage.fingerprint import fingerprint
from oortriage.triage.root import Root

#: Exceptions of no known message whose class alone speaks of memory: not to be called unrelated.
_MEMORY_CLASS = re.compile(r"OutOfMemory|OutOfResources|MemoryError|ResourceExhausted|bad_alloc", re.IGNORECASE)


class Absence(msgspec.Struct, frozen=True):
    """Why there is no root, in the words of the diagnosis."""

    title: str
    summary: str
    resource: Resource = "none"
    status: Status = "unknown"
    cause: str = ""
    code: str = ""
    confidence: float = 0.9
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()


def without_root(log: Log, root: Root, stated: list[Fact]) -> Diagnosis:
    """Say what a log without a proved resource failure is."""
    facts = Facts(stated)
    derive(log, facts)
    absence = (
        _killed_otherwise(log, root)
        or _unknown_memory(log, root)
        or _unrelated(log, root)
        or _masked(log, root)
        or _cut(log, root)
        or _survived(root)
        or _clean(log, root)
    )
    seen = [("recovered", one) for one in root.recovered[:3]] + [("wrapper", one) for one in root.wrappers[:3]]
    quotes = [
        view.quote(log, one.line, one.offset, "recovered" if role == "recovered" else "wrapper", one.code, one.stream)
        for role, one in seen
    ]
    return Diagnosis(
        schema_version=SCHEMA_VERSION,
        file=log.name,
        code=absence.code,
        title=absence.title,
        resource=absence.resource,
        cause=absence.cause,
        phase="unknown",
        status=absence.status,
        confidence=absence.confidence,
        fingerprint=fingerprint([absence.resource, absence.status, absence.code or absence.title]),
        summary=absence.summary,
        evidence=[*absence.evidence, *quotes],
        facts=view.facts_view(facts),
        masked_by=view.masks(root),
        missing=list(absence.missing),
        others=view.others(root),
        notes=log.notes,
    )


def _killed_otherwise(log: Log, root: Root) -> Absence | None:
    if root.killed is None:
        return None
    return Absence(
        title="A process was killed for a reason that the log states, and that is not memory",
        summary="SIGKILL came from a limit, a probe or an operator; no message says that memory ran out.",
        cause="unrelated",
        confidence=0.8,
        evidence=(view.quote(log, root.killed, 0, "root", "", root.killed.stream),),
    )


def _unknown_memory(log: Log, root: Root) -> Absence | None:
    """An exception whose class speaks of memory, with a message that no rule knows."""
    for raised, line in root.unknown:
        if _MEMORY_CLASS.search(raised.type):
            return Absence(
                title="An exception speaks of memory in words that no rule knows",
                summary=f"{raised.type} was raised; its message does not say which memory.",
                resource="undetermined",
                status="fatal",
                confidence=0.4,
                evidence=(view.quote(log, line, 0, "root", "", line.stream),),
                missing=("the whole message of the exception and the traceback above it",),
            )
    return None


def _unrelated(log: Log, root: Root) -> Absence | None:
    unrelated = root.unrelated[0] if root.unrelated else None
    unknown = root.unknown[0] if root.unknown and (root.wrappers or not root.recovered) else None
    told = "No message about a resource running out precedes it."
    if unrelated and (unknown is None or unrelated.order <= unknown[1].order or root.wrappers):
        quote = view.quote(log, unrelated.line, unrelated.offset, "root", unrelated.code, unrelated.stream)
        title = unrelated.rule.title
        return Absence(title, f"{title}. {told}", cause="unrelated", code=unrelated.code, evidence=(quote,))
    if unknown:
        raised, line = unknown
        title = f"The run died of {raised.type}, which is no resource failure"
        quote = view.quote(log, line, 0, "root", "", line.stream)
        return Absence(title, f"{title}. {told}", cause="unrelated", confidence=0.75, evidence=(quote,))
    return None


def _masked(log: Log, root: Root) -> Absence | None:
    if not root.wrappers:
        return None
    first = root.wrappers[0]
    missing = [
        "the whole log from the start of the process, with every worker's output, not only its end",
        "the first traceback: search upwards for the first `Traceback (most recent call last)`",
    ]
    if not log.complete:
        missing.append("the part round the first failure as a file of its own")
    return Absence(
        title="Something failed, and the log does not hold the cause",
        summary=f"{first.rule.title}; the lines that say why are not in this log.",
        resource="undetermined",
        status="fatal",
        code=first.code,
        confidence=0.3,
        missing=tuple(missing),
    )


def _cut(log: Log, root: Root) -> Absence | None:
    """A traceback without its exception: the log was cut before the line that would have told."""
    open_ends = [
        stream.lines[raised.last]
        for stream in log.streams
        for raised in stream.raised
        if not raised.type and not stream.lines[raised.last].in_prose and raised.last >= len(stream.lines) - 3
    ]
    if not open_ends or root.recovered:
        return None
    last = open_ends[-1]
    return Absence(
        title="A traceback breaks off before its exception",
        summary="The log ends in the middle of a traceback; the line that names the failure is missing.",
        resource="undetermined",
        status="fatal",
        confidence=0.3,
        evidence=(view.quote(log, last, 0, "root", "", last.stream),),
        missing=("the lines after the traceback's last frame",),
    )


def _survived(root: Root) -> Absence | None:
    if root.recovered:
        count, first = len(root.recovered), root.recovered[0]
        return Absence(
            title="Nothing failed for good: the program survived the resource errors it printed",
            summary=f"{count} resource error(s) were printed and survived, the first: {first.rule.title}.",
            status="recovered",
            code=first.code,
        )
    pressure = [one for one in root.warnings if one.rule.resource in ("kv_cache", "device_memory")]
    if pressure:
        return Absence(
            title="No failure: the program reported pressure on a resource and went on",
            summary=f"{len(pressure)} warning(s) about a resource, the first: {pressure[0].rule.title}.",
            status="recovered",
            code=pressure[0].code,
        )
    return None


def _clean(log: Log, root: Root) -> Absence:
    if not root.mentions:
        return Absence(
            "No resource failure found", "No message about a resource running out is in this log.", confidence=0.8
        )
    title = "No failure: resource messages are only quoted or talked about"
    return Absence(title, f"{title}.", confidence=0.7 if log.markdown else 0.8)
