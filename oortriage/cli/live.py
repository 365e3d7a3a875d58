"""What ``--live`` adds to reproduce and experiment; without a card the virtual result stands, and it is said."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from oortriage.cli.output import complain
from oortriage.cli.progress import progress
from oortriage.replay.experiment import Experiment
from oortriage.replay.live import NoCardError
from oortriage.replay.live_grid import live_grid
from oortriage.replay.reproduce import Reproduction
from oortriage.replay.selection import Selection

Result = TypeVar("Result", Reproduction, Experiment)
#: The exit code when the question to the card has no answer.
NO_CARD = 3


def add_live(
    result: Result,
    chosen: Selection,
    points: list[dict[str, Any]],
    wanted: str,
    *,
    device: int,
    seconds: float,
    use_cache: bool,
) -> tuple[Result, int]:
    """Run settings on the local card and return the result with them, and its exit code.

    A card takes longer for a cell than the compiler: its limit is twice ``seconds``.
    """
    if not wanted:
        return result, result.exit_code
    try:
        with progress("running on the card") as report:
            ran = live_grid(
                chosen, points, wanted, device=device, progress=report, cell_seconds=2 * seconds, use_cache=use_cache
            )
    except NoCardError as problem:
        complain(problem)
        return msgspec.structs.replace(result, notes=[*result.notes, f"not run on a card: {problem}"]), NO_CARD
    whole = msgspec.structs.replace(result, live=ran)
    return whole, whole.exit_code
