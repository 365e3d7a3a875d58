"""What the doctor looks at: one module a check, each with NAME, TITLE, CODES and ``check(machine)``."""

from __future__ import annotations

from typing import cast

from oortriage.doctor.checks import (
    allocator,
    cards,
    cgroup,
    driver,
    ecc,
    engine,
    limits,
    memory,
    mig,
    mps,
    packages,
    peer,
    runtime,
    shm,
    variables,
    visible,
    xid,
)
from oortriage.doctor.examine import Check
from oortriage.doctor.finding import Code

#: In the order of their facts.
ALL: tuple[Check, ...] = cast(
    "tuple[Check, ...]",
    (
        driver, runtime, cards, memory, mig, mps, ecc, xid, peer, shm, cgroup, limits, visible, allocator, variables,
        packages, engine,
    ),
)  # fmt: skip


def every_code() -> list[Code]:
    """List the kinds of finding, in order of their codes."""
    return sorted((code for one in ALL for code in one.CODES), key=lambda code: code.code)
