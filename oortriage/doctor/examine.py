"""Runs every check; none can end or hold up the others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from oortriage.doctor.finding import ORDER, Checked, Code, Examination, Finding, NotChecked
from oortriage.doctor.machine import Machine
from oortriage.version import __version__

SCHEMA_VERSION = 1
#: For one check: longer than any outside call in it may take.
_CHECK_SECONDS = 90.0


class Check(Protocol):
    """A module of ``oortriage.doctor.checks``."""

    #: Its name in the JSON, and what it looks at.
    NAME: str
    TITLE: str
    #: The kinds of finding it can make.
    CODES: tuple[Code, ...]

    def check(self, machine: Machine) -> Checked:
        """Look at a machine."""


def examine(machine: Machine, checks: Sequence[Check] | None = None, seconds: float = _CHECK_SECONDS) -> Examination:
    """Run the checks on a machine.

    Args:
        machine: what is looked at.
        checks: all there are when left out.
        seconds: limit for each; one that takes longer is left behind and noted as not checked.
    """
    if checks is None:
        from oortriage.doctor.checks import ALL

        checks = ALL
    findings: list[Finding] = []
    facts = {}
    missed: list[NotChecked] = []
    for one in checks:
        outcome = _guarded(one, machine, seconds)
        findings += outcome.findings
        if outcome.facts:
            facts[one.NAME] = outcome.facts
        missed += [NotChecked(one.NAME, what, reason) for what, reason in outcome.not_checked]
    findings.sort(key=lambda found: (ORDER.index(found.severity), found.code, found.subject))
    return Examination(SCHEMA_VERSION, __version__, tuple(findings), facts, tuple(missed))


def _guarded(one: Check, machine: Machine, seconds: float) -> Checked:
    """Run a check in a thread that can be left behind: a file of a dead network drive blocks for ever."""
    outcome: list[Checked] = []

    def work() -> None:
        try:
            outcome.append(one.check(machine))
        except Exception as problem:  # noqa: BLE001 (a fault of one check must not take the others with it)
            said = f"this check failed: {type(problem).__name__}: {problem}"
            outcome.append(Checked(not_checked=((one.TITLE, said),)))

    thread = threading.Thread(target=work, daemon=True, name=f"doctor-{one.NAME}")
    thread.start()
    thread.join(seconds)
    if not outcome:
        return Checked(not_checked=((one.TITLE, f"did not end within {seconds:g} s"),))
    return outcome[0]
