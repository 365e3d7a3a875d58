"""Rules for tests: small, made here, and independent of the ones that ship."""

from __future__ import annotations

from typing import Any

from oortriage.evidence.rule import Pattern, Rule

#: A rule file without any fault, as a person would write it.
VALID = """\
code = "ZZ900"
name = "gizmo-full"
title = "The gizmo is full"
role = "failure"
resource = "device_memory"
cause = "capacity"
software = "gizmo"
anchors = ["gizmo overflow"]
meaning = "The gizmo asked for more than it has."
sources = ["gizmo 1.0: gizmo.py"]

[[pattern]]
regex = '''gizmo overflow: (?P<required_bytes>\\d+) of (?P<limit_bytes>\\d+) bytes'''
captures = { required_bytes = "bytes", limit_bytes = "bytes" }

[[sample]]
text = "gizmo overflow: 300 of 200 bytes"
numbers = { required_bytes = 300, limit_bytes = 200 }

[[counter]]
text = "gizmo overflow: none"
why = "nothing ran over"

[[remedy]]
change = "gizmo --smaller"
effect = "asks for less"
"""


def pattern(regex: str, **fields: Any) -> Pattern:
    return Pattern(regex, **fields)


def rule(*patterns: Pattern | str, anchors: list[str], **fields: Any) -> Rule:
    """Make a rule; plain strings are patterns without captures."""
    made = [one if isinstance(one, Pattern) else Pattern(one) for one in patterns]
    base: dict[str, Any] = {
        "code": "ZZ900",
        "name": "gizmo",
        "title": "The gizmo is full",
        "role": "failure",
        "resource": "device_memory",
        "software": "gizmo",
        "meaning": "The gizmo is full.",
    }
    return Rule(**{**base, **fields}, anchors=anchors, pattern=made)
