"""Events and facts to a diagnosis: the one place where the verdict is put together."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from oortriage.evidence.event import Event, find_events
from oortriage.evidence.fact import Fact, facts_of
from oortriage.evidence.matcher import Matcher
from oortriage.intake.log import Log
from oortriage.triage import device_memory, kv_cache, memory_budget, plain, shared_memory, view
from oortriage.triage.absent import without_root
from oortriage.triage.case import Case, Facts, Finding
from oortriage.triage.derived import derive
from oortriage.triage.diagnosis import SCHEMA_VERSION, Diagnosis, Prescription, WillNotHelp
from oortriage.triage.fingerprint import fingerprint
from oortriage.triage.phase import phase_of
from oortriage.triage.reclassify import reclassify
from oortriage.triage.root import Root, find_root, raised_with
from oortriage.triage.version import within

#: Below this confidence no resource is named.
THRESHOLD = 0.5
#: Most that a kill without the kernel's own words is worth.
KILL_ALONE = 0.65
_BASE = {"exact": 0.97, "partial": 0.82, "paraphrase": 0.65}
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
        return without_root(log, root, stated)
    return _with_root(log, root, root.event, events, stated)


def _with_root(log: Log, root: Root, event: Event, events: Sequence[Event], stated: list[Fact]) -> Diagnosis:
    facts = Facts(stated, event.line.number)
    derive(log, facts)
    raised = raised_with(log, event)
    numbers: dict[str, int | float] = {}
    companions = [one for one in root.companions if one.rule.resource == event.rule.resource]
    beside = [one for one in root.same if 0 <= one.order - event.order <= _BESIDE]
    for one in (*reversed(companions), *reversed(beside), event):
        numbers.update(one.match.numbers)
    case = Case(
        log=log,
        root=root,
        event=event,
        numbers=numbers,
        facts=facts,
        phase=phase_of(log, event, companions, raised, events, root.first_order),
        raised=raised,
        events=events,
    )
    finding = _EXAMINERS.get(event.rule.resource, plain.examine)(case)
    budget = memory_budget.budget_of(case)
    if budget:
        memory_budget.prescribe(finding, budget)
    _add_rule_advice(case, finding)
    confidence = _confidence(root, event, finding)
    rule = event.rule
    resource = rule.resource
    if confidence < THRESHOLD:
        resource = "undetermined"
        finding.prescriptions.clear()
        finding.missing.insert(0, "the message as the program printed it, with the lines round it")
    kernel = shared_memory.kernel_of(case) if rule.resource == "shared_memory" else ""
    for fact in shared_memory.kernel_facts(case, kernel) if rule.resource == "shared_memory" else ():
        facts.add(fact)
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
        evidence=view.evidence(log, root, event),
        numbers={**numbers, **finding.numbers},
        facts=view.facts_view(facts),
        masked_by=view.masks(root),
        decision=finding.decision,
        ruled_out=finding.ruled_out,
        missing=finding.missing,
        bill=finding.bill,
        budget=budget,
        prescriptions=finding.prescriptions,
        will_not_help=finding.will_not_help,
        others=view.others(root),
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
    if event.rule.resource == "host_memory":
        # A SIGKILL alone is no proof of a shortage.
        value = min(value, KILL_ALONE) if value < _BASE["exact"] - 0.1 else value
    rivals = {one.rule.resource for one in (*root.later, *root.companions) if one.match.pattern.quality == "exact"}
    if rivals - {event.rule.resource}:
        value -= 0.07
    return round(max(0.0, value - finding.doubt), 2)


def _add_rule_advice(case: Case, finding: Finding) -> None:
    """Append the rule's own remedies and warnings where cause, context and version fit."""
    rule, root, facts = case.event.rule, case.root, case.facts
    place = case.event.match.text.lower()
    place += f" program:{case.program} "
    if case.raised:
        place += " ".join(f"{frame.file} {frame.function}" for frame in case.raised.frames).lower()
    # A change computed from the log's own figures stands for the rule's general one of the same kind.
    known = {_key(one.change) for one in finding.prescriptions}
    for remedy in rule.remedy:
        if remedy.causes and finding.cause not in remedy.causes:
            continue
        if remedy.context and not any(word.lower() in place for word in remedy.context):
            continue
        if within(facts.text(f"{rule.software}_version"), remedy.since, remedy.until) is False:
            continue
        if any(word in remedy.change for word in finding.forbidden):
            continue
        if _key(remedy.change) not in known:
            known.add(_key(remedy.change))
            finding.prescriptions.append(
                Prescription(remedy.change, remedy.effect, remedy.cost, remedy.safety, remedy.verify)
            )
    said = {one.advice for one in finding.will_not_help}
    kin = [one.rule for one in root.companions if one.rule.resource == rule.resource]
    for companion in (rule, *kin):
        for bad in companion.will_not_help:
            if any(word in bad.advice for word in finding.inapplicable):
                continue
            if (not bad.causes or finding.cause in bad.causes) and bad.advice not in said:
                said.add(bad.advice)
                finding.will_not_help.append(WillNotHelp(bad.advice, bad.why))


def _key(change: str) -> str:
    """Name the setting a change is about: the flag or variable, whatever its value or spelling."""
    return re.split(r"[\s=]", change.removeprefix("export ").strip())[0]
