"""Rule files to rules: found, read, validated, with the file and line of every mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from oortriage.errors import RuleError
from oortriage.evidence.rule import Rule, flexible_spaces
from oortriage.evidence.values import CONVERTERS

#: The compiled rules, beside the folder of the rules they were made from.
COMPILED = "rules.json"
_TOML_LINE = re.compile(r"line (\d+)")
_CODE = re.compile(r"^[A-Z]{2,4}\d{3}$")
#: What ``re.compile`` raises: an error of the expression, a repetition beyond its limit, too many brackets.
_NOT_COMPILED = (re.error, OverflowError, RecursionError)


def rules_folder() -> Path:
    """Return the folder of the rules that ship with the package (or with its source tree)."""
    packaged = Path(__file__).resolve().parent.parent / "_data" / "rules"
    if packaged.is_dir():
        return packaged
    return Path(__file__).resolve().parent.parent.parent / "rules"


def load_rule(path: Path, family: str = "") -> Rule:
    """Read and validate one rule file.

    Raises:
        RuleError: not TOML, not a rule, or a rule that contradicts itself; the message starts with
            ``file:line``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise RuleError(f"{path}: cannot be read: {problem}") from problem
    try:
        table = msgspec.toml.decode(text)
    except msgspec.DecodeError as problem:
        line = _TOML_LINE.search(str(problem))
        raise RuleError(f"{path}:{line.group(1) if line else 1}: not TOML: {problem}") from problem
    try:
        rule = msgspec.convert(table, Rule)
    except msgspec.ValidationError as problem:
        raise RuleError(f"{path}:{_line_of(text, str(problem))}: {problem}") from problem
    for problem_text, needle in _contradictions(rule):
        raise RuleError(f"{path}:{_line_with(text, needle)}: {problem_text}")
    return msgspec.structs.replace(rule, family=family or path.parent.name, path=str(path))


def load_folder(folder: Path) -> list[Rule]:
    """Load every ``*.toml`` below a folder, in order of code.

    Raises:
        RuleError: a rule is not valid, or two rules share a code.
    """
    if not folder.is_dir():
        raise RuleError(f"{folder}: no such folder of rules")
    rules: dict[str, Rule] = {}
    for path in sorted(folder.rglob("*.toml")):
        rule = load_rule(path)
        if rule.code in rules:
            raise RuleError(f"{path}:1: code {rule.code} is taken by {rules[rule.code].path}")
        rules[rule.code] = rule
    return [rules[code] for code in sorted(rules)]


@lru_cache(maxsize=1)
def built_in_rules() -> tuple[Rule, ...]:
    """Load the rules that ship with oortriage, once a process."""
    compiled = rules_folder().parent / COMPILED
    if compiled.is_file():
        return msgspec.json.decode(compiled.read_bytes(), type=tuple[Rule, ...])
    return tuple(load_folder(rules_folder()))


def compile_rules(folder: Path) -> bytes:
    """Turn a folder of rules into the one JSON file that a wheel holds beside it.

    Reading some hundred TOML files takes most of a second, this file some milliseconds. Paths are
    kept relative to the package's data folder.

    Raises:
        RuleError: a rule is not valid.
    """
    rules = [
        msgspec.structs.replace(rule, path=f"{folder.name}/{Path(rule.path).relative_to(folder)}")
        for rule in load_folder(folder)
    ]
    return msgspec.json.encode(rules)


def rule_file(rule: Rule) -> Path:
    """Return the path of a rule's own file, also for a rule that came from the compiled file.

    Compiled paths are relative to the package's data folder; a working folder may hold a file of
    the same path, which is not the rule that ships.
    """
    ships = any(rule is own for own in built_in_rules())
    return rules_folder().parent / rule.path if ships else Path(rule.path)


def users_rules(rules: Iterable[Rule]) -> frozenset[str]:
    """Return the codes of the rules that did not ship with the package, to be run under a time limit.

    The object tells: a user's copy of a rule may have its code, its path and all of its text.
    """
    own = {id(rule) for rule in built_in_rules()}
    return frozenset(rule.code for rule in rules if id(rule) not in own)


def all_rules(extra_folders: Iterable[Path] = ()) -> tuple[Rule, ...]:
    """Join the built-in rules and the user's; a user's rule replaces a built-in one by its code."""
    rules = {rule.code: rule for rule in built_in_rules()}
    for folder in extra_folders:
        for rule in load_folder(folder):
            rules[rule.code] = rule
    return tuple(rules.values())


def _contradictions(rule: Rule) -> Iterable[tuple[str, str]]:
    """Yield what no schema can see, each with a text by which its line is found."""
    if not _CODE.match(rule.code):
        yield f"code {rule.code!r} is not letters and three digits, such as SM101", "code"
    if not rule.anchors or any(len(anchor) < 4 for anchor in rule.anchors):
        yield "anchors: at least one literal of 4 characters or more is needed", "anchors"
    if not rule.pattern:
        yield "a rule needs at least one [[pattern]]", "code"
    if rule.role in ("failure", "recovered", "warning") and rule.resource == "none":
        yield f"a rule with role {rule.role!r} must name a resource", "role"
    for pattern in rule.pattern:
        try:
            groups = set(re.compile(flexible_spaces(pattern.regex)).groupindex)
        except _NOT_COMPILED as problem:
            yield _why_not_compiled(pattern.regex, problem), pattern.regex[:30]
            continue
        for name, kind in pattern.captures.items():
            if name not in groups:
                yield f"captures: no group {name!r} in the regex", name
            if kind not in CONVERTERS:
                yield f"captures: no type {kind!r} (there are {', '.join(CONVERTERS)})", name
        if groups - set(pattern.captures) - {"at"}:
            missing = ", ".join(sorted(groups - set(pattern.captures) - {"at"}))
            yield f"captures: the group(s) {missing} have no type", missing.split(",")[0]


def _why_not_compiled(regex: str, problem: Exception) -> str:
    """Say what is wrong with a regex, in terms of the expression as it was written."""
    try:
        re.compile(regex)
    except _NOT_COMPILED as own:
        return f"regex is not valid: {own}"
    return f"regex is not valid, because a space in it matches white space of any length (write [ ] for one): {problem}"


def _line_of(text: str, problem: str) -> int:
    """Find the line of the key that a validation message names (``$.sample[0].text``)."""
    keys = re.findall(r"[A-Za-z_]\w*", problem.rpartition("$")[2])
    unknown = re.search(r"unknown field `(\w+)`", problem)
    return _line_with(text, unknown.group(1) if unknown else (keys[0] if keys else "code"))


def _line_with(text: str, needle: str) -> int:
    at = text.find(needle)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1
