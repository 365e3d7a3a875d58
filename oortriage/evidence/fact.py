"""Facts: what the log says about the machine, the versions and the configuration, with the line."""

from __future__ import annotations

import re

import msgspec

from oortriage.evidence.event import Event

Value = str | int | float


class Fact(msgspec.Struct, frozen=True):
    """One fact. ``confidence`` is 0 to 1; ``source`` is the rule or reading it came from."""

    name: str
    value: Value
    file: str
    line: int
    confidence: float
    source: str


_CONFIDENCE = {"exact": 0.97, "partial": 0.7, "paraphrase": 0.5}


def facts_of(events: list[Event], file: str) -> list[Fact]:
    """Turn the matches of fact rules into facts, in reading order."""
    facts = []
    for event in events:
        if event.rule.role != "fact":
            continue
        values: dict[str, Value] = {**event.match.details, **event.match.numbers}
        for name, raw in values.items():
            value = raw.strip().strip("'\"`,;") if isinstance(raw, str) else raw
            if value in ("", "None", "auto", "null"):
                continue
            if name == "compute_capability":
                value = re.sub(r"^\(?(\d+), ?(\d+)\)?$", r"\1.\2", str(value))
            facts.append(
                Fact(
                    name,
                    value,
                    file,
                    event.line.number,
                    _CONFIDENCE[event.match.pattern.quality],
                    event.code,
                )
            )
    return facts
