"""Rules against their own samples: what ``oortriage rules test`` and the test suite run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from oortriage.evidence.literals import fold
from oortriage.evidence.matcher import Match, Matcher
from oortriage.evidence.rule import Rule


class Finding(msgspec.Struct, frozen=True):
    """One way in which a rule does not do what its file says."""

    code: str
    problem: str


def check_samples(rule: Rule, matcher: Matcher) -> Iterator[Finding]:
    """Run one rule's samples and counter-samples through a matcher that holds the rule.

    A sample must match, must give its numbers and details, and must hold one of the rule's
    anchors; a counter-sample must not match.
    """
    if rule.is_event and not rule.sample:
        yield Finding(rule.code, "has no sample")
    for number, sample in enumerate(rule.sample, 1):
        folded = fold(sample.text)
        if not any(fold(anchor) in folded for anchor in rule.anchors):
            yield Finding(rule.code, f"sample {number}: none of the anchors occurs in it")
        matches = _of(rule, matcher.find(sample.text))
        if rule.code in matcher.timed_out:
            return  # it matches nothing from here on, and check_all says why
        if not matches:
            yield Finding(rule.code, f"sample {number}: does not match: {sample.text[:100]!r}")
            continue
        numbers: dict[str, int | float] = {}
        details: dict[str, str] = {}
        for match in matches:
            numbers.update(match.numbers)
            details.update(match.details)
        for name, value in sample.numbers.items():
            if numbers.get(name) != value:
                yield Finding(
                    rule.code,
                    f"sample {number}: {name} is {numbers.get(name)!r}, should be {value!r}",
                )
        for name, text in sample.details.items():
            if details.get(name) != text:
                yield Finding(rule.code, f"sample {number}: {name} is {details.get(name)!r}, not {text!r}")
    for number, counter in enumerate(rule.counter, 1):
        if _of(rule, matcher.find(counter.text)):
            yield Finding(rule.code, f"counter-sample {number} matches: {counter.text[:100]!r}")


def check_all(rules: Sequence[Rule], *, guarded: frozenset[str] = frozenset()) -> list[Finding]:
    """Check every rule's samples with all rules loaded together.

    Args:
        rules: the rules to check.
        guarded: codes of rules that run under a time limit; one that exceeds it is a finding.
    """
    matcher = Matcher(rules, guarded=guarded)
    findings: list[Finding] = []
    for rule in rules:
        before = set(matcher.timed_out)
        findings += check_samples(rule, matcher)
        findings += [
            Finding(code, f"the expression took too long on a sample of {rule.code} and was given up")
            for code in sorted(matcher.timed_out - before)
        ]
    return findings


def _of(rule: Rule, matches: Sequence[Match]) -> list[Match]:
    return [match for match in matches if match.rule.code == rule.code]
