"""What can fire: one file a rule, each with CODE, TITLE, MEANING and ``check(view)``; all of them in RULES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oortriage.watch.rules import (
    device_growth,
    group_full,
    group_growth,
    host_leak,
    kv_pressure,
    oom_kill,
    other_process,
    preemptions,
    process_leak,
)
from oortriage.watch.view import Finding, View


class Rule(Protocol):
    """A rule, which is a module."""

    @property
    def CODE(self) -> str:  # noqa: N802
        """The stable code."""

    @property
    def TITLE(self) -> str:  # noqa: N802
        """What it says, in one line."""

    @property
    def MEANING(self) -> str:  # noqa: N802
        """When it fires, and what helps."""

    def check(self, view: View) -> list[Finding]:
        """Return what holds now."""


RULES: Sequence[Rule] = (
    process_leak,
    device_growth,
    other_process,
    kv_pressure,
    preemptions,
    host_leak,
    group_growth,
    group_full,
    oom_kill,
)
