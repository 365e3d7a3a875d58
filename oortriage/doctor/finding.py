"""What a check says: findings with a stable code, facts, and what could not be looked at and why."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

#: ``error``: CUDA or the serving library will not work so; ``warning``: it costs memory, speed or safety;
#: ``note``: good to know, and nothing is wrong. Notes do not change the exit code.
Severity = Literal["error", "warning", "note"]
ORDER: tuple[Severity, ...] = ("error", "warning", "note")


class Finding(msgspec.Struct, frozen=True):
    """One thing found on this machine.

    ``subject`` is what it is about ("GPU 0", a variable, a package); ``message`` holds the figures read here;
    ``source`` is the page or file that the judgement rests on.
    """

    code: str
    severity: Severity
    title: str
    subject: str
    message: str
    remedy: str
    source: str


class Code(msgspec.Struct, frozen=True):
    """A kind of finding: what it means in general, and what helps unless the finding says something better."""

    code: str
    severity: Severity
    title: str
    meaning: str
    remedy: str
    source: str

    def found(self, subject: str, message: str, remedy: str = "") -> Finding:
        """Make a finding of this kind."""
        return Finding(self.code, self.severity, self.title, subject, message, remedy or self.remedy, self.source)


class NotChecked(msgspec.Struct, frozen=True):
    """Something that could not be looked at. ``check`` is the name of the check, ``what`` the part of it."""

    check: str
    what: str
    reason: str


class Checked(msgspec.Struct, frozen=True):
    """The outcome of one check. Sizes among the facts are in bytes, and their names end in ``_bytes``."""

    facts: dict[str, Any] = {}
    findings: tuple[Finding, ...] = ()
    #: Pairs of what was not looked at, and why.
    not_checked: tuple[tuple[str, str], ...] = ()


class Examination(msgspec.Struct, frozen=True):
    """All checks of one machine. ``facts`` are by check."""

    schema_version: int
    oortriage: str
    findings: tuple[Finding, ...]
    facts: dict[str, dict[str, Any]]
    not_checked: tuple[NotChecked, ...]

    @property
    def exit_code(self) -> int:
        """0 when nothing is wrong, 1 when there is an error or a warning."""
        return int(any(one.severity != "note" for one in self.findings))
