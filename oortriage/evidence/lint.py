"""Rule files checked beyond their schema: what a reviewer would ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from oortriage.errors import RuleError
from oortriage.evidence.loader import load_rule
from oortriage.evidence.rule import Rule

#: Nested quantifiers, the usual way to an expression that never ends.
_NESTED = re.compile(r"\((?:\?:)?(?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)[+*]")
_PATHS = re.compile(r"/(?:home|root|Users)/\w")


def lint_folder(folder: Path) -> Iterator[str]:
    """Yield every problem of the rule files below a folder, as ``file:line: problem``."""
    codes: dict[str, Path] = {}
    if not folder.is_dir():
        raise RuleError(f"{folder}: no such folder of rules")
    for path in sorted(folder.rglob("*.toml")):
        try:
            rule = load_rule(path)
        except RuleError as problem:
            yield str(problem)
            continue
        if rule.code in codes:
            yield f"{path}:1: code {rule.code} is taken by {codes[rule.code]}"
        codes[rule.code] = path
        if path.stem != rule.code:
            yield f"{path}:1: the file should be named {rule.code}.toml"
        for needle, problem_text in _review(rule):
            yield f"{path}:{_line(path, needle)}: {problem_text}"


def _review(rule: Rule) -> Iterator[tuple[str, str]]:
    if not rule.meaning.strip():
        yield "meaning", "meaning is empty"
    if rule.title.endswith("."):
        yield "title", "the title ends with a full stop"
    if rule.is_event and not rule.sample:
        yield "code", "no [[sample]]"
    if rule.role == "failure" and not rule.sources:
        yield "code", "no sources: where is the message from?"
    for pattern in rule.pattern:
        if _NESTED.search(pattern.regex):
            yield pattern.regex[:20], "nested quantifiers: the expression may take for ever"
        if pattern.regex.startswith((".*", ".+")):
            yield pattern.regex[:20], "a leading .* matches from every position"
    for anchor in rule.anchors:
        if "\n" in anchor or "  " in anchor:
            yield "anchors", f"anchor {anchor!r}: single spaces only"
    for sample in rule.sample:
        if _PATHS.search(sample.text):
            yield sample.text[:20], "a sample holds a path of somebody's machine"


def _line(path: Path, needle: str) -> int:
    text = path.read_text(encoding="utf-8")
    at = text.find(needle)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
