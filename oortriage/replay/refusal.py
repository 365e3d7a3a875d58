"""Tells a mistake of the user's, which ends the command, from a kernel that does not compile, which is a result."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from oortriage.errors import UsageError
from oortriage.replay.job import Outcome
from oortriage.replay.selection import LAUNCH_OPTIONS


def refuse_mistakes(outcomes: Sequence[Outcome]) -> None:
    """Raise where nothing was compiled because it could not even be tried.

    Raises:
        UsageError: a file that is not Python, a function that is no kernel, an argument that is missing,
            source that cannot be read.
    """
    if any(outcome.kernels for outcome in outcomes):
        return
    for outcome in outcomes:
        if outcome.failure and outcome.failure.kind in ("environment", "usage"):
            raise UsageError(outcome.failure.message)


def refuse_unused(names: Iterable[str], outcomes: Sequence[Outcome], option: str) -> None:
    """Raise where a constant was to be set that no kernel has which was launched: the figure would not be of it.

    Raises:
        UsageError: with the constants there are, near ones first.
    """
    compiled = [outcome for outcome in outcomes if outcome.kernels]
    for name in names:
        if compiled and all(name in outcome.unused for outcome in compiled):
            known = {one: None for outcome in compiled for kernel in outcome.kernels for one in kernel.settings}
            every = [*known, *(one for one in LAUNCH_OPTIONS if one not in known)]
            near = difflib.get_close_matches(name, every, cutoff=0.6)
            hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(every)}"
            raise UsageError(f"{option} {name}: no kernel launched here has a constant of that name; {hint}")
