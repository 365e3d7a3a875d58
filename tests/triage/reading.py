"""From a text to the inner objects of triage, for tests of one module at a time."""

from __future__ import annotations

import re

from oortriage.evidence.event import Event, find_events
from oortriage.evidence.fact import Fact, Value
from oortriage.evidence.matcher import Matcher
from oortriage.intake.line import Piece
from oortriage.intake.log import Log, build_log
from oortriage.triage.case import Case, Facts
from oortriage.triage.diagnosis import Diagnosis, Phase
from oortriage.triage.root import Root, find_root, raised_with
from tests.conftest import ROOT


def read(text: str) -> Log:
    pieces = (Piece(number, 0, line) for number, line in enumerate(text.split("\n"), 1))
    return build_log("log.txt", pieces, complete=True, notes=[])


def root_of(text: str, matcher: Matcher) -> Root:
    log = read(text)
    return find_root(log, find_events(log, matcher))


def case_of(text: str, matcher: Matcher, *, phase: Phase = "unknown", **facts: Value) -> Case:
    """Make a case of the failure in a text, with these facts and no others."""
    log = read(text)
    events = find_events(log, matcher)
    root = find_root(log, events)
    event: Event | None = root.event
    assert event is not None, text
    stated = [fact(name, value) for name, value in facts.items()]
    return Case(
        log=log,
        root=root,
        event=event,
        numbers=dict(event.match.numbers),
        facts=Facts(stated),
        phase=phase,
        raised=raised_with(log, event),
        events=events,
    )


def fact(name: str, value: Value, line: int = 1, confidence: float = 0.97) -> Fact:
    return Fact(name, value, "log.txt", line, confidence, "test")


def documented_causes() -> dict[str, set[str]]:
    """Read the causes of each resource from the contributor's document."""
    text = (ROOT / "docs" / "writing-rules.md").read_text(encoding="utf-8")
    section = text.partition("## Causes")[2].partition("## ")[0]
    causes: dict[str, set[str]] = {}
    for item in re.split(r"^- ", section, flags=re.MULTILINE)[1:]:
        names, _, listed = item.partition(": ")
        for resource in re.findall(r"`(\w+)`", names):
            causes[resource] = set(re.findall(r"\w+", listed))
    return causes


def changes(diagnosis: Diagnosis) -> list[str]:
    """List what a diagnosis prescribes, in order."""
    return [one.change for one in diagnosis.prescriptions]


def utilizations(diagnosis: Diagnosis) -> list[float]:
    """List the fractions that a diagnosis prescribes for ``--gpu-memory-utilization``."""
    found = (re.search(r"--gpu-memory-utilization (\d\.\d+)", one) for one in changes(diagnosis))
    return [float(one.group(1)) for one in found if one]
