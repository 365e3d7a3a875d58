"""Events and facts to a diagnosis: the one place where the verdict is put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oortriage.evidence.event import Event, find_events
from oortriage.evidence.fact import Fact, facts_of
from oortriage.evidence.matcher import Matcher
from oortriage.intake.line import Line
from oortriage.intake.log import Log
from oortriage.triage import device_memory, kv_cache, plain, shared_memory
from oortriage.triage.case import Case, Facts, Finding
from oortriage.triage.derived import derive
from oortriage.triage.diagnosis import (
    SCHEMA_VERSION,
    Diagnosis,
    Evidence,
    Mask,
    OtherFailure,
    Prescription,
    StatedFact,
    WillNotHelp,
)
from oortriage.triage.fingerprint import fingerprint
from oortriage.triage.phase import phase_of
from oortriage.triage.reclassify import reclassify
from oortriage.triage.root import Root, find_root, raised_with
from oortriage.triage.version import within

#: Below this confidence no resource is named.
THRESHOLD = 0.5
_BASE = {"exact": 0.97, "partial": 0.82, "paraphrase": 0.65}
_TEXT_KEPT = 2000
#: Lines within which the same failure, printed again, may add the figures that its first line lacks.
_BESIDE = 60
_EXAMINERS: dict[str, Callable[[Case], Finding]] = {
    "shared_memory": shared_memory.examine,
    "device_memory": device_memory.examine,
    "kv_cache": kv_cache.examine,
}


def diagnose(log: Log, matcher: Matcher) -> Diagnosis:
    """Give the verdict on one log."""
    events = find_events(log, matcher)
    root = find_root(log, events)
    if root.event is not None:
        root = reclassify(log, root, matcher.rules)
    stated = facts_of(events, log.name)
    if root.event is None:
        return _without_root(log, root, stated)
    return _with_root(log, root, root.event, events, stated)


def _with_root(log: Log, root: Root, event: Event, events: Sequence[Event], stated: list[Fact]) -> Diagnosis:
    facts = Facts(stated, event.line.number)
    derive(log, facts)
    raised = raised_with(log, event)
    numbers: dict[str, int | float] = {}
    beside = [one for one in root.same if 0 <= one.order - event.order <= _BESIDE]
    for one in (*reversed(root.companions), *reversed(beside), event):
        numbers.update(one.match.numbers)
    case = Case(
        log=log,
        root=root,
        event=event,
        numbers=numbers,
        facts=facts,
        phase=phase_of(log, event, root.companions, raised, events),
        raised=raised,
        events=events,
    )
    finding = _EXAMINERS.get(event.rule.resource, plain.examine)(case)
    confidence = _confidence(root, event, finding)
    rule = event.rule
    resource = rule.resource if confidence >= THRESHOLD else "undetermined"
    kernel = shared_memory.kernel_of(case) if rule.resource == "shared_memory" else ""
    _add_rule_advice(case, finding)
    return Diagnosis(
        schema_version=SCHEMA_VERSION,
        file=log.name,
        code=rule.code,
        title=rule.title,
        resource=resource,
        cause=finding.cause,
        phase=case.phase,
        status="fatal",
        confidence=confidence,
        fingerprint=fingerprint(
            [
                rule.resource,
                finding.cause,
                rule.software,
                kernel,
                numbers.get("required_bytes"),
                numbers.get("limit_bytes"),
                facts.text("dtype").removeprefix("torch."),
                case.phase if rule.resource != "shared_memory" else "",
            ]
        ),
        summary=finding.summary,
        evidence=_evidence(log, root, event),
        numbers={**numbers, **finding.numbers},
        facts=_facts_view(facts),
        masked_by=_masks(root),
        ruled_out=finding.ruled_out,
        missing=finding.missing,
        bill=finding.bill,
        prescriptions=finding.prescriptions,
        will_not_help=finding.will_not_help,
        others=_others(root),
        occurrences=1 + len(root.same),
        streams=sorted({one.stream for one in (event, *root.same) if one.stream}),
        notes=log.notes + finding.notes,
    )


def _confidence(root: Root, event: Event, finding: Finding) -> float:
    """How sure the resource is, 0 to 1; checked against the labelled fixtures by a test."""
    agreeing = [one for one in (*root.same, *root.companions) if one.rule.resource == event.rule.resource]
    value = max(_BASE[one.match.pattern.quality] for one in (event, *agreeing))
    if event.line.in_prose:
        value -= 0.12
    if event.line.prefix.level in ("I", "INFO", "D", "DEBUG", "W", "WARN", "WARNING"):
        value -= 0.08
    rivals = {one.rule.resource for one in (*root.later, *root.companions) if one.match.pattern.quality == "exact"}
    if rivals - {event.rule.resource}:
        value -= 0.07
    return round(max(0.0, value - finding.doubt), 2)


def _without_root(log: Log, root: Root, stated: list[Fact]) -> Diagnosis:
    """Say what a log without a proved resource failure is: recovered, unrelated, masked or clean."""
    facts = Facts(stated)
    derive(log, facts)
    evidence: list[Evidence] = []
    missing: list[str] = []
    resource, status, code, cause = "none", "unknown", "", ""
    confidence = 0.9
    masks = _masks(root)
    unrelated = root.unrelated[0] if root.unrelated else None
    unknown = root.unknown[0] if root.unknown else None
    if unrelated is not None or (unknown is not None and (root.wrappers or not root.recovered)):
        if unrelated is not None and (unknown is None or unrelated.order <= unknown[1].order or root.wrappers):
            title, code = unrelated.rule.title, unrelated.code
            evidence.append(_quote(log, unrelated.line, unrelated.offset, "root", code, unrelated.stream))
        else:
            assert unknown is not None
            raised, line = unknown
            title = f"The run died of {raised.type}, which is no resource failure"
            evidence.append(_quote(log, line, 0, "root", "", line.stream))
            confidence = 0.75
        summary = f"{title}. No message about a resource running out precedes it."
        cause = "unrelated"
    elif root.wrappers:
        resource, code = "undetermined", root.wrappers[0].code
        title = "Something failed, and the log does not hold the cause"
        summary = f"{root.wrappers[0].rule.title}; the lines that say why are not in this log."
        status, confidence = "fatal", 0.3
        missing += [
            "the whole log from the start of the process, with every worker's output, not only its end",
            "the first traceback: search upwards for the first `Traceback (most recent call last)`",
        ]
        if not log.complete:
            missing.append("the part around the first failure as a file of its own")
    elif root.recovered:
        title = "Nothing failed for good: the program survived the resource errors it printed"
        code = root.recovered[0].code
        count, first = len(root.recovered), root.recovered[0].rule.title
        summary = f"{count} resource error(s) were printed and survived, the first: {first}."
        status = "recovered"
    elif any(one.rule.resource in ("kv_cache", "device_memory") for one in root.warnings):
        title = "No failure: the program reported pressure on a resource and went on"
        code = root.warnings[0].code
        summary = f"{len(root.warnings)} warning(s) about a resource, the first: {root.warnings[0].rule.title}."
        status = "recovered"
    elif root.mentions and not log.markdown:
        title = "No failure: resource messages are only quoted or talked about"
        summary = f"{title}."
        confidence = 0.8
    elif root.mentions:
        title = "A resource failure is talked about, but no message of one is in the text"
        summary = f"{title}."
        confidence = 0.7
    else:
        title = "No resource failure found"
        summary = "No message about a resource running out is in this log."
    evidence += [_quote(log, one.line, one.offset, "recovered", one.code, one.stream) for one in root.recovered[:3]]
    evidence += [_quote(log, one.line, one.offset, "wrapper", one.code, one.stream) for one in root.wrappers[:3]]
    return Diagnosis(
        schema_version=SCHEMA_VERSION,
        file=log.name,
        code=code,
        title=title,
        resource=resource,  # type: ignore[arg-type]
        cause=cause,
        phase="unknown",
        status=status,  # type: ignore[arg-type]
        confidence=confidence,
        fingerprint=fingerprint([resource, status, code, title if not code else ""]),
        summary=summary,
        evidence=evidence,
        facts=_facts_view(facts),
        masked_by=masks,
        missing=missing,
        others=_others(root),
        occurrences=0,
        notes=log.notes,
    )


def _add_rule_advice(case: Case, finding: Finding) -> None:
    """Append the rule's own remedies and warnings where cause, context and version fit."""
    rule, root, facts = case.event.rule, case.root, case.facts
    place = case.event.match.text.lower()
    if case.raised:
        place += " ".join(f"{frame.file} {frame.function}" for frame in case.raised.frames).lower()
    known = {one.change for one in finding.prescriptions}
    for remedy in rule.remedy:
        if remedy.causes and finding.cause not in remedy.causes:
            continue
        if remedy.context and not any(word.lower() in place for word in remedy.context):
            continue
        if within(facts.text(f"{rule.software}_version"), remedy.since, remedy.until) is False:
            continue
        if remedy.change not in known:
            finding.prescriptions.append(
                Prescription(remedy.change, remedy.effect, remedy.cost, remedy.safety, remedy.verify)
            )
    said = {one.advice for one in finding.will_not_help}
    for companion in (rule, *(one.rule for one in root.companions)):
        for bad in companion.will_not_help:
            if (not bad.causes or finding.cause in bad.causes) and bad.advice not in said:
                said.add(bad.advice)
                finding.will_not_help.append(WillNotHelp(bad.advice, bad.why))


def _evidence(log: Log, root: Root, event: Event) -> list[Evidence]:
    quotes = [_quote(log, event.line, event.offset, "root", event.code, event.stream)]
    quotes += [
        _quote(log, one.line, one.offset, "same_failure", one.code, one.stream)
        for one in (*root.companions[:2], *root.same[:3])
    ]
    quotes += [_quote(log, one.line, one.offset, "wrapper", one.code, one.stream) for one in root.wrappers[:3]]
    return quotes


def _quote(log: Log, line: Line, offset: int, role: str, code: str, stream: str) -> Evidence:
    piece, column = line.place(offset)
    return Evidence(
        file=log.name,
        line=piece.number,
        column=column,
        text=piece.raw[:_TEXT_KEPT],
        role=role,  # type: ignore[arg-type]
        code=code,
        stream=stream,
    )


def _masks(root: Root) -> list[Mask]:
    seen: dict[str, Mask] = {}
    for one in root.wrappers:
        seen.setdefault(one.code, Mask(one.code, one.rule.title, one.line.number))
    return list(seen.values())


def _others(root: Root) -> list[OtherFailure]:
    views = [OtherFailure(one.code, one.rule.resource, one.line.number, "other_run") for one in root.other_runs]
    views += [OtherFailure(one.code, one.rule.resource, one.line.number, "later") for one in root.later[:5]]
    seen: set[str] = set()
    for one in root.warnings:
        if one.code not in seen:
            seen.add(one.code)
            views.append(OtherFailure(one.code, one.rule.resource, one.line.number, "warning"))
    return views


def _facts_view(facts: Facts) -> dict[str, StatedFact]:
    return {
        fact.name: StatedFact(fact.value, fact.file, fact.line, round(fact.confidence, 2), fact.source)
        for fact in facts
    }
