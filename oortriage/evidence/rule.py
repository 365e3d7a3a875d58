"""What a rule is: one message format of one program, with its meaning, samples and remedy."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Resource = Literal[
    "shared_memory",
    "tensor_memory",
    "registers",
    "threads",
    "device_memory",
    "kv_cache",
    "host_memory",
    "host_shm",
    "device_context",
    "none",
    "undetermined",
]

#: What a match says about the run.
#:
#: - ``failure``: this resource ran out, here.
#: - ``wrapper``: something failed and this line only reports it; the cause stands elsewhere.
#: - ``recovered``: a failure the program caught and survived, by the line's own words.
#: - ``benign``: looks like a failure and is none; it takes the text out of the other rules' reach.
#: - ``warning``: pressure on a resource while the program goes on; never a verdict on its own.
#: - ``unrelated``: a failure that has nothing to do with a resource.
#: - ``fact``: tells about the machine, the versions or the configuration.
#: - ``phase``: tells which part of the run has begun.
Role = Literal["failure", "wrapper", "recovered", "benign", "warning", "unrelated", "fact", "phase"]

#: How much of the printed format a pattern asks for; it sets the confidence of the match.
Quality = Literal["exact", "partial", "paraphrase"]


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One regular expression. A space in it matches any run of white space, line breaks too."""

    regex: str
    captures: dict[str, str] = {}
    quality: Quality = "exact"
    ignore_case: bool = False


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text the rule must match, and the numbers that must come out of it."""

    text: str
    numbers: dict[str, int | float] = {}
    details: dict[str, str] = {}
    source: str = ""


class CounterSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that looks alike and that the rule must not match."""

    text: str
    why: str = ""


class Remedy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to change. Version bounds name the software's first and last release it fits."""

    change: str
    effect: str = ""
    cost: str = ""
    safety: Literal["safe", "costs_speed", "changes_output", "risky"] = "safe"
    verify: str = ""
    causes: list[str] = []
    #: Words of which one must stand in the message or its traceback, for a remedy of one kernel.
    context: list[str] = []
    since: str = ""
    until: str = ""


class BadAdvice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Advice people give for this message that does not help, and why it does not."""

    advice: str
    why: str
    causes: list[str] = []


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule file. ``family`` and ``path`` are filled in by the loader."""

    code: str
    name: str
    title: str
    role: Role
    software: str
    anchors: list[str]
    pattern: list[Pattern]
    meaning: str
    resource: Resource = "none"
    cause: str = ""
    phase: str = ""
    why: str = ""
    since: str = ""
    until: str = ""
    sample: list[Sample] = []
    counter: list[CounterSample] = []
    remedy: list[Remedy] = []
    will_not_help: list[BadAdvice] = []
    sources: list[str] = []
    #: For a wrapper: it says that what was survived so far was the end of it after all.
    blames_recovered: bool = False
    state: Literal["preview", "stable", "deprecated"] = "stable"
    family: str = ""
    path: str = ""

    @property
    def is_event(self) -> bool:
        """Whether a match says something about a failure, and not about the environment."""
        return self.role not in ("fact", "phase")


_OUTSIDE_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\(\?[a-zA-Z:=!<]+| ")


def flexible_spaces(pattern: str) -> str:
    r"""Let every plain space of a pattern match any run of white space, line breaks included.

    Terminals and issue texts wrap messages anywhere between words, so a rule would otherwise have
    to write ``\s+`` throughout. Spaces in character classes, after a backslash and in front of a
    quantifier keep their meaning.
    """

    def swap(found: re.Match[str]) -> str:
        piece = found.group()
        if piece != " ":
            return piece
        following = pattern[found.end() : found.end() + 1]
        return r"\s" if following in "*+?{" and following else r"\s+"

    return _OUTSIDE_CLASS.sub(swap, pattern)
