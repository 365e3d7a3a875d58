"""A rule as a page for people: ``oortriage explain`` and the rule reference are made from it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from oortriage.evidence.rule import Rule


def describe(rule: Rule) -> str:
    """Write one rule as Markdown that also reads well as plain text."""
    lines = [f"# {rule.code}: {rule.title}", ""]
    facts = [f"role {rule.role}", f"resource {rule.resource}"]
    if rule.cause:
        facts.append(f"cause {rule.cause}")
    facts.append(f"printed by {rule.software}{_span(rule)}")
    lines += [", ".join(facts) + ".", "", " ".join(rule.meaning.split())]
    if rule.why:
        lines += ["", "Why: " + " ".join(rule.why.split())]
    if rule.sample:
        lines += ["", "Looks like:", ""]
        lines += [f"    {line}" for line in rule.sample[0].text.strip().splitlines()[:8]]
    if rule.remedy:
        lines += ["", "What helps:", ""]
        for remedy in rule.remedy:
            bounds = _bounds(remedy.since, remedy.until)
            only = f" (for {', '.join(remedy.causes)})" if remedy.causes else ""
            effect = f": {' '.join(remedy.effect.split())}" if remedy.effect else ""
            cost = f" Cost: {remedy.cost}." if remedy.cost else ""
            lines.append(f"- {remedy.change}{bounds}{only}{effect}{cost}")
    if rule.will_not_help:
        lines += ["", "What does not help:", ""]
        lines += [f"- {bad.advice}: {' '.join(bad.why.split())}" for bad in rule.will_not_help]
    if rule.sources:
        lines += ["", "Sources:", ""]
        lines += [f"- {source}" for source in rule.sources]
    return "\n".join(lines) + "\n"


def reference(rules: Sequence[Rule]) -> str:
    """Write the rule reference: all event rules by family, one line each, in order of code."""
    lines = [
        "# Rule reference",
        "",
        (
            "Generated from `rules/` by `oortriage rules reference`; do not edit. "
            "`oortriage explain CODE` prints a rule in full."
        ),
    ]
    ordered = sorted(rules, key=lambda rule: (rule.family, rule.code))
    for family, members in groupby(ordered, key=lambda rule: rule.family):
        lines += ["", f"## {family}", "", "| code | role | resource | title |", "|---|---|---|---|"]
        lines += [f"| {rule.code} | {rule.role} | {rule.resource} | {_cell(rule.title)} |" for rule in members]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _span(rule: Rule) -> str:
    return _bounds(rule.since, rule.until)


def _bounds(since: str, until: str) -> str:
    if since and until:
        return f" {since} to {until}"
    if since:
        return f" from {since}"
    return f" up to {until}" if until else ""
