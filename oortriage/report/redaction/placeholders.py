"""Placeholders: the same secret gets the same one, and a text that holds them can be redacted again.

While a text is worked on, every placeholder is one private-use character, so that no expression can match half
of one. What stood in the text already (placeholders of an earlier run, private-use characters) is kept the same way.
"""

from __future__ import annotations

import msgspec
import regex

from oortriage.report.redaction.pattern import Kind

_FIRST, _LAST = 0xF0000, 0x10FFFD
_STANDING = regex.compile(
    r"<(?:token|email|user|host|ip|mac|gpu|serial|account)-(?:\d{1,9}|many)>"
    r"|<(?:prompt|withheld)-(?:\d{1,9}|many) \(\d{1,12} characters\)>"
    r"|[\U000F0000-\U0010FFFF]"
)
_OPAQUE = regex.compile(r"[\U000F0000-\U0010FFFF]")
#: Kinds whose placeholder tells how long the text was.
_MEASURED = ("prompt", "withheld")


class Replacement(msgspec.Struct, frozen=True):
    """A placeholder, what it stands for, and how often it was put in. Never the secret."""

    kind: Kind
    placeholder: str
    count: int


class Placeholders:
    """The placeholders of one redactor."""

    def __init__(self) -> None:
        """Start with none."""
        self.counting = True
        self._renderings: list[str] = []
        self._opaque: dict[str, str] = {}
        self._of_secret: dict[tuple[Kind, str], str] = {}
        self._kinds: dict[str, Kind] = {}
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def hide(self, text: str) -> str:
        """Turn the placeholders that stand in a text into one character each."""
        if "<" not in text and text.isascii():
            return text
        return str(_STANDING.sub(lambda found: self._character(found.group()), text))

    def show(self, text: str) -> str:
        """Turn the characters back into placeholders."""
        return text if text.isascii() else str(_OPAQUE.sub(self._rendering, text))

    def character(self, kind: Kind, secret: str) -> str:
        """Return the character that stands for a secret."""
        secret = self.show(secret)
        placeholder = self._of_secret.get((kind, secret))
        if placeholder is None:
            placeholder = self._new(kind, len(secret))
            self._of_secret[kind, secret] = placeholder
        return self._character(placeholder)

    def is_one(self, text: str) -> bool:
        """Say whether a text is one placeholder and nothing else."""
        text = text.strip()
        return len(text) == 1 and text >= chr(_FIRST)

    def count(self, before: str, after: str) -> None:
        """Add the placeholders that a text got; both texts are hidden ones."""
        if not self.counting or before == after:
            return
        for character, sign in ((c, s) for part, s in ((before, -1), (after, 1)) for c in _OPAQUE.findall(part)):
            rendering = self._rendering_of(character)
            if rendering in self._kinds:
                self._counts[rendering] = self._counts.get(rendering, 0) + sign

    def replacements(self) -> list[Replacement]:
        """Return what was put in, by kind and number."""
        return [
            Replacement(kind=kind, placeholder=placeholder, count=self._counts[placeholder])
            for placeholder, kind in self._kinds.items()
            if self._counts.get(placeholder, 0) > 0
        ]

    def secrets(self, *kinds: Kind) -> list[tuple[Kind, str]]:
        """Return the secrets of some kinds, for the search of further places where they stand."""
        return [(kind, secret) for kind, secret in self._of_secret if kind in kinds]

    def _new(self, kind: Kind, length: int) -> str:
        tail = f" ({length} characters)" if kind in _MEASURED else ""
        if len(self._renderings) >= _LAST - _FIRST - 64:  # room is left for one such placeholder a kind
            placeholder = f"<{kind}-many{' (0 characters)' if tail else ''}>"
        else:
            number = self._numbers.get(kind, 0) + 1
            self._numbers[kind] = number
            placeholder = f"<{kind}-{number}{tail}>"
        self._kinds[placeholder] = kind
        return placeholder

    def _character(self, rendering: str) -> str:
        character = self._opaque.get(rendering)
        if character is None:
            if len(self._renderings) >= _LAST - _FIRST:
                return "\ufffd"
            character = chr(_FIRST + len(self._renderings))
            self._renderings.append(rendering)
            self._opaque[rendering] = character
            self._reserve(rendering)
        return character

    def _reserve(self, rendering: str) -> None:
        # A number that stands in the log already is not given to another secret.
        kind, _, rest = rendering[1:].partition("-")
        digits = rest.split(">")[0].split(" ")[0]
        if digits.isascii() and digits.isdigit():
            self._numbers[kind] = max(self._numbers.get(kind, 0), int(digits))

    def _rendering_of(self, character: str) -> str:
        index = ord(character) - _FIRST
        return self._renderings[index] if index < len(self._renderings) else "\ufffd"

    def _rendering(self, found: regex.Match[str]) -> str:
        return self._rendering_of(found.group())
