"""One number with where it comes from: given, printed in a log, computed, or a guess with its range."""

from __future__ import annotations

from typing import Literal

import msgspec

#: ``given`` by the user or the model's config; ``measured``: printed by the program; ``derived``: exact arithmetic
#: on given and measured numbers; ``estimated``: rests on at least one guess, and has a range.
Provenance = Literal["given", "measured", "derived", "estimated"]


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number. ``unit``: bytes, tokens, blocks, requests, share, layers; ``how``: the arithmetic or the source.

    ``low`` and ``high`` bound an estimate, in the same unit.
    """

    value: float
    unit: str
    provenance: Provenance
    how: str = ""
    low: float | None = None
    high: float | None = None
