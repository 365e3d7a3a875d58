"""From what a user types for a GPU to its architecture, and from there to a compiler's target.

A name that several architectures answer to is never guessed: the error names them.
"""

from __future__ import annotations

import difflib
import re
from functools import cache

from oortriage.errors import UsageError
from oortriage.gpu.specs import ARCHITECTURES, Architecture, by_capability

#: Words round a card's name that do not tell which card it is: maker, market, memory, form factor.
_NOISE = re.compile(
    r"nvidia|geforce|tesla|amd|instinct|radeon|gpus?|graphics|generation|edition|lovelace|r|tm"
    r"|laptop|mobile|notebook|workstation|server|desktop|maxq|pcie|sxm[2-5]?|nvlink|oam"
    r"|hbm[23]e?|gddr[67]x?|[0-9]+(?:gb|gib|g)",
    re.ASCII,
)
#: The maker's words written together with the card: "TeslaT4", "NVIDIAGeForceRTX4090".
_MAKER = re.compile(r"(?<![a-z0-9])(?:nvidia|geforce|tesla|amd|instinct|radeon)+(?=[a-z0-9])", re.ASCII)
#: Words that a card's name may begin with and that people leave off.
_FAMILY = ("quadro", "rtx", "gtx", "rx", "pro", "jetson", "ryzen")
#: Short names that two cards go by although one alone would fit. Clouds list A4000, A5000 and A6000 for
#: Ampere; "A2000" is said of both small cards. The first TITAN X is Maxwell and older than the table.
_SAID_OF_BOTH = {
    "a2000": ("RTX A2000", "RTX 2000 Ada"),
    "titanx": ("TITAN X (Pascal)", "GTX TITAN X (sm_52, not in the table)"),
}

_TARGET = re.compile(
    r"(?:(?P<backend>cuda|nvidia|hip|amd|rocm):)?"
    r"(?:(?P<gfx>gfx[0-9a-f]+)(?::[a-z0-9+:-]*)?"
    r"|(?P<sm>(?:sm|compute)[_ -]?)?(?P<number>[0-9]{1,2}\.[0-9]|[0-9]{2,3})[af]?(?::32)?)",
    re.ASCII,
)
_DEVICE = re.compile(r"(?:cuda|hip|rocm|gpu|xpu)?:?[0-9]", re.ASCII)
_BACKENDS = {"cuda": "nvidia", "nvidia": "nvidia", "hip": "amd", "amd": "amd", "rocm": "amd"}


def resolve(text: str) -> Architecture:
    """Find the architecture of the GPU a user names.

    Args:
        text: A card (``RTX 4090``, ``rtx-4090``, ``4090``, ``NVIDIA H100 80GB HBM3``), a compute capability
            (``7.5``, ``75``, ``sm_90a``, ``cuda:75``), a GFX target (``gfx942:sramecc+:xnack-``,
            ``hip:gfx942``) or a generation with one architecture (``Hopper``).

    Returns:
        The architecture.

    Raises:
        UsageError: No architecture, or more than one, answers to the name.
    """
    lowered = text.strip().lower()
    if not lowered:
        raise UsageError("no GPU named; write a card (RTX 4090), sm_89 or gfx942")
    target = _TARGET.fullmatch(lowered)
    if target:
        found = by_capability(target["gfx"] or target["number"])
        backend = target["backend"]
        if found and backend and _BACKENDS[backend] != found.vendor:
            raise UsageError(f"{_quoted(text)}: {found.name} is not an architecture of {backend}")
        if found:
            return found
        if backend or target["gfx"] or target["sm"] or "." in lowered:
            known = ", ".join(_target_name(one) for one in ARCHITECTURES)
            raise UsageError(f"{_quoted(text)} is not in the table of architectures; it has {known}")
    if _DEVICE.fullmatch(lowered):
        raise UsageError(f"{_quoted(text)} is a device's number, not a kind of GPU; write a card, sm_XX or gfxNNN")
    return _by_name(text)


def triton_target(architecture: Architecture) -> tuple[str, int | str, int]:
    """Give an architecture the way Triton's ``GPUTarget`` takes it.

    Args:
        architecture: The architecture.

    Returns:
        Backend, architecture and warp size in threads: ``("cuda", 75, 32)`` or ``("hip", "gfx942", 64)``.
    """
    if architecture.vendor == "nvidia":
        return "cuda", int(architecture.name.replace(".", "")), architecture.warp_size
    return "hip", architecture.name, architecture.warp_size


def _by_name(text: str) -> Architecture:
    words = _words(text)
    generations = _generations()
    named = [generations[word] for word in words if word in generations]
    rest = [word for word in words if word not in generations]
    key = "".join(rest)
    if key in _SAID_OF_BOTH and not named:
        raise _ambiguous(text, set(_SAID_OF_BOTH[key]))
    full, short = _index()
    if rest:
        # The whole name of a card counts before the end of another's ("T1000" before "Quadro T1000").
        cards = full.get("".join(words)) or full.get(key) or short.get(key) or _inside(words)
    else:
        cards = frozenset(card for group in named for one in group for card in one.cards)
    fitting = {card for card in cards if all(_owner()[card] in group for group in named)}
    architectures = {_owner()[card] for card in fitting}
    if not rest and named:
        # A generation alone: its architectures are the candidates, its cards too many to list.
        architectures = set(named[0]).intersection(*named)
        fitting = {_target_name(one) for one in architectures}
    if len(architectures) == 1:
        return architectures.pop()
    if architectures:
        raise _ambiguous(text, fitting)
    raise _unknown(text, key)


def _words(text: str) -> list[str]:
    """Split a name into its telling words, lower case, without maker, memory and form factor."""
    plain = re.sub(r"max[\s_-]*q", "maxq", text.lower()[:200])
    plain = _MAKER.sub(" ", plain)
    # "RDNA3.5" is the only name with a dot that tells something.
    found: list[str] = re.findall(r"[rc]dna[0-9.]*|[a-z0-9]+", plain)
    return [word for word in found if not _NOISE.fullmatch(word)]


@cache
def _owner() -> dict[str, Architecture]:
    return {card: one for one in ARCHITECTURES for card in one.cards}


@cache
def _generations() -> dict[str, tuple[Architecture, ...]]:
    names = {one.generation for one in ARCHITECTURES}
    return {name.lower(): tuple(one for one in ARCHITECTURES if one.generation == name) for name in names}


@cache
def _index() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Cards by their whole name, and by what people leave of it; all words in one."""
    full: dict[str, set[str]] = {}
    short: dict[str, set[str]] = {}
    for card in _owner():
        words = _words(card)
        full.setdefault("".join(words), set()).add(card)
        words = [word for word in words if word not in _generations()]
        short.setdefault("".join(words), set()).add(card)
        if words[:2] == ["rtx", "pro"]:
            # "RTX 6000 Blackwell" is said of the RTX PRO 6000.
            short.setdefault("rtx" + "".join(words[2:]), set()).add(card)
        while len(words) > 1 and words[0] in _FAMILY:
            words = words[1:]
            short.setdefault("".join(words), set()).add(card)
    return (
        {key: frozenset(cards) for key, cards in full.items()},
        {key: frozenset(cards) for key, cards in short.items()},
    )


def _inside(words: list[str]) -> frozenset[str]:
    """Find cards whose whole name stands inside a longer text, each with the longest name that fits."""
    own = {card: _words(card) for card in _owner()}
    spans = [
        (start, start + len(name), card)
        for card, name in own.items()
        for start in range(len(words) - len(name) + 1)
        if words[start : start + len(name)] == name
    ]
    return frozenset(
        card
        for start, end, card in spans
        if not any(a <= start and end <= b and (a, b) != (start, end) for a, b, _ in spans)
    )


def _target_name(one: Architecture) -> str:
    return one.name if one.vendor == "amd" else "sm_" + one.name.replace(".", "")


def _quoted(text: str) -> str:
    """Show what was typed, shortened, with nothing in it that a terminal would obey."""
    return ascii(text if len(text) <= 60 else text[:57] + "...")


def _ambiguous(text: str, cards: set[str]) -> UsageError:
    owner = _owner()
    names = [f"{card} ({_target_name(owner[card])})" if card in owner else card for card in sorted(cards)]
    return UsageError(f"{_quoted(text)} may be any of {', '.join(names)}; name one of them, or its sm_XX or gfxNNN")


def _unknown(text: str, key: str) -> UsageError:
    full, short = _index()
    keys = difflib.get_close_matches(key[:40], [*full, *short], n=8, cutoff=0.5)
    near = dict.fromkeys(card for one in keys for card in sorted(full.get(one) or short[one]))
    hint = f"near names: {', '.join(list(near)[:6])}; " if near else ""
    return UsageError(f"unknown GPU {_quoted(text)}; {hint}sm_XX (sm_89) and gfxNNN (gfx942) work too")
