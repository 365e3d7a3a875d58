"""Limits by architecture, and which cards have that architecture: the table and how to look into it.

Every figure names where it comes from and the day it was checked. A limit printed in a log always
wins over this table.
"""

from __future__ import annotations

import re

from oortriage.gpu.amd import AMD
from oortriage.gpu.architecture import KIB, Architecture
from oortriage.gpu.nvidia import NVIDIA

__all__ = ["ARCHITECTURES", "KIB", "Architecture", "by_capability", "by_card", "by_limit"]

ARCHITECTURES: tuple[Architecture, ...] = NVIDIA + AMD

_BY_NAME = {architecture.name: architecture for architecture in ARCHITECTURES}
#: Thor was 10.1 up to CUDA 12.9 and is 11.0 since 13.0 (release notes of nvCOMPDx 0.1.1 and cuRANDDx 0.2.1).
_RENAMED = {"10.1": "11.0"}
# Longest first: "RTX 2000 Ada" before anything shorter that it holds.
_CARDS = sorted(
    ((card.lower(), one) for one in ARCHITECTURES for card in one.cards),
    key=lambda pair: -len(pair[0]),
)


def by_capability(name: str) -> Architecture | None:
    """Find an architecture by ``7.5``, ``sm_75``, ``75`` or ``gfx942``; None when unknown."""
    lowered = name.strip().lower()
    if lowered.startswith("gfx"):
        return _BY_NAME.get(lowered.split(":")[0])
    text = lowered.removeprefix("sm_").removeprefix("sm").rstrip("af")
    if text.isdigit() and len(text) >= 2:
        text = f"{text[:-1]}.{text[-1]}"
    return _BY_NAME.get(_RENAMED.get(text, text))


def by_card(name: str) -> Architecture | None:
    """Find an architecture by a card's name as drivers print it; None when it is not known."""
    plain = re.sub(r"[\s_-]+", " ", name).lower()
    for card, architecture in _CARDS:
        # A letter may follow (RTX 2080Ti); a digit makes it another card, "Ada" another generation.
        if card in plain and re.search(rf"(?<![a-z0-9]){re.escape(card)}(?![0-9])(?!\s*ada)", plain):
            return architecture
    return None


def by_limit(limit: int) -> list[Architecture]:
    """List the architectures whose blocks may have exactly this many bytes; often several."""
    return [one for one in ARCHITECTURES if one.shared_per_block == limit]
