"""A decision that can be followed: the tests that were made, in order, each with its arithmetic and its answer."""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True):
    """One test of a decision. ``figures`` is the arithmetic with its numbers; ``answer`` says what follows from it.

    ``holds``: True where the test names the cause, False where it rules its cause out, None where a figure is missing.
    """

    test: str
    figures: str
    holds: bool | None
    answer: str
