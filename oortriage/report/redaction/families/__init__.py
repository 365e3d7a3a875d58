"""Families of secrets, in the order in which they are looked for.

Prompts go first, so that a key within one goes with it. Logins go before e-mail addresses and hosts, which
would else take a part of them; full names of hosts before bare addresses.
"""

from __future__ import annotations

from oortriage.report.redaction.families import (
    addresses,
    assignments,
    hardware,
    hosts,
    people,
    private_keys,
    prompts,
    tokens,
    web,
)
from oortriage.report.redaction.pattern import Pattern

ALL: tuple[Pattern, ...] = (
    *prompts.PATTERNS,
    *private_keys.PATTERNS,
    *web.PATTERNS,
    *tokens.PATTERNS,
    *assignments.PATTERNS,
    *people.PATTERNS,
    *addresses.PATTERNS,
    *hosts.PATTERNS,
    *hardware.PATTERNS,
)
