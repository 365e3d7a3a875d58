"""Takes secrets out of texts, so that a report can leave the machine."""

from __future__ import annotations

from typing import TypeVar

import regex

from oortriage.report.redaction.families import ALL
from oortriage.report.redaction.pattern import Kind, Pattern
from oortriage.report.redaction.placeholders import Placeholders, Replacement
from oortriage.report.redaction.walk import Walk

T = TypeVar("T")

#: One pass can bring to light what the next one finds; each takes text away, so it ends by itself.
_ROUNDS = 12
#: Seconds that one expression may take on one text.
_PATIENCE = 10.0
_LINE_PATIENCE = 1.0


class Redactor:
    """Redacts any number of texts and structs; the same secret gets the same placeholder in all of them."""

    def __init__(self, patterns: tuple[Pattern, ...] = ALL) -> None:
        """Keep the patterns; all of them where nothing else is said."""
        self._patterns = patterns
        self._placeholders = Placeholders()
        self._further: tuple[int, regex.Pattern[str] | None, dict[str, Kind]] = (0, None, {})

    def text(self, text: str) -> str:
        """Return a text without its secrets. Lines stay lines; a redacted text comes back unchanged."""
        hidden = self._placeholders.hide(text)
        done = self._settle(hidden)
        self._placeholders.count(hidden, done)
        return self._placeholders.show(done)

    def peek(self, text: str) -> str:
        """Return what ``text`` returns, and count nothing."""
        return self._placeholders.show(self._settle(self._placeholders.hide(text)))

    def secret(self, kind: Kind, text: str) -> str:
        """Return the placeholder of a text of which somebody else knows that it is a secret."""
        hidden = self._placeholders.hide(text)
        if not hidden.strip() or self._placeholders.is_one(hidden):
            return text
        done = self._replaced(kind, hidden)
        self._placeholders.count(hidden, done)
        return self._placeholders.show(done)

    def struct(self, value: T) -> T:
        """Return a struct, list, tuple or dict with every string in it redacted, at any depth.

        It is gone through twice: a token or a host that one place gives away is then known in all of them.
        """
        self._placeholders.counting = False
        try:
            Walk(self).value(value)
        finally:
            self._placeholders.counting = True
        done: T = Walk(self).value(value)
        return done

    @property
    def replaced(self) -> list[Replacement]:
        """What was replaced and how often, without the secrets."""
        return self._placeholders.replacements()

    def _settle(self, text: str) -> str:
        for _ in range(_ROUNDS):
            before = text
            lowered = text.lower()
            for pattern in self._patterns:
                if not pattern.anchors or any(anchor in lowered for anchor in pattern.anchors):
                    text = self._apply(pattern, text)
            text = self._known(text)
            if text == before:
                break
        return text

    def _apply(self, pattern: Pattern, text: str) -> str:
        try:
            return self._splice(pattern.kind, text, list(pattern.spans(text, _PATIENCE)))
        except TimeoutError:
            return "\n".join(self._line(pattern, line) for line in text.split("\n"))

    def _line(self, pattern: Pattern, line: str) -> str:
        try:
            return self._splice(pattern.kind, line, list(pattern.spans(line, _LINE_PATIENCE)))
        except TimeoutError:  # what could not be read through does not leave the machine
            return self._replaced("withheld", line)

    def _splice(self, kind: Kind, text: str, spans: list[tuple[int, int]]) -> str:
        parts: list[str] = []
        done = 0
        for start, end in spans:
            secret = text[start:end]
            if secret.strip() and not self._placeholders.is_one(secret):
                parts += (text[done:start], self._replaced(kind, secret))
                done = end
        return "".join((*parts, text[done:])) if parts else text

    def _replaced(self, kind: Kind, secret: str) -> str:
        return self._placeholders.character(kind, secret) + "\n" * secret.count("\n")

    def _known(self, text: str) -> str:
        """Replace tokens and hosts that were found elsewhere, wherever they stand."""
        secrets = self._placeholders.secrets("token", "host")
        if len(secrets) != self._further[0]:
            kinds = {secret: kind for kind, secret in secrets if _telling(kind, secret)}
            expression = (
                regex.compile(r"(?<![A-Za-z0-9_])\L<known>(?![A-Za-z0-9_])", known=list(kinds)) if kinds else None
            )
            self._further = (len(secrets), expression, kinds)
        _, expression, kinds = self._further
        if expression is None:
            return text
        try:
            found = [one.span() for one in expression.finditer(text, timeout=_PATIENCE)]
        except TimeoutError:  # the places that gave the secrets away are done already
            return text
        return self._splice_known(text, found, kinds)

    def _splice_known(self, text: str, found: list[tuple[int, int]], kinds: dict[str, Kind]) -> str:
        parts: list[str] = []
        done = 0
        for start, end in found:
            parts += (text[done:start], self._replaced(kinds[text[start:end]], text[start:end]))
            done = end
        return "".join((*parts, text[done:])) if parts else text


def _telling(kind: Kind, secret: str) -> bool:
    """Say whether a secret is odd enough that the same letters elsewhere are the same secret."""
    digits, letters = any(c.isdigit() for c in secret), any(c.isalpha() for c in secret)
    if kind == "token":
        return len(secret) >= 12 and digits and letters and "\n" not in secret
    return len(secret) >= 5 and letters and digits and ("-" in secret or "." in secret or len(secret) >= 6)
