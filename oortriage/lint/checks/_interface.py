"""A check: a code, what it means, what proves it, and a function from a case to what it hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from oortriage.lint.finding import Severity
from oortriage.lint.invocation import Invocation, Option
from oortriage.lint.surface import Surface
from oortriage.lint.tables import Tables
from oortriage.lint.unit import Setting, Unit
from oortriage.lint.versions import Release


class Card(msgspec.Struct, frozen=True):
    """The card of ``--gpu``: its name and compute capability."""

    name: str
    capability: tuple[int, int]

    @property
    def said(self) -> str:
        """Name it with its capability."""
        return f"{self.name} (compute capability {self.capability[0]}.{self.capability[1]})"


class Model(msgspec.Struct, frozen=True):
    """What the model's config says; 0 where it does not. ``heads``: attention heads; ``length``: positions, tokens."""

    heads: int = 0
    length: int = 0
    scaled: bool = False
    dtype: str = ""


class Case(msgspec.Struct, frozen=True):
    """Everything about one process that a check may ask."""

    unit: Unit
    surface: Surface
    tables: Tables
    release: Release
    settings: dict[str, Setting]
    invocation: Invocation | None = None
    card: Card | None = None
    model: Model | None = None

    def option(self, name: str) -> Option | None:
        """Return an option of the command, the last if it is given twice."""
        return self.invocation.last(name) if self.invocation else None

    def on(self, name: str) -> Option | None:
        """Return a switch that is on: ``--x``, ``--x=true``, ``x=True``."""
        option = self.option(name)
        if option is None or option.negated or option.open:
            return None
        return option if (option.value or "true").lower() == "true" else None

    def off(self, name: str) -> Option | None:
        """Return a switch that is off: ``--no-x``, ``--x=false``, ``x=False``."""
        option = self.option(name)
        if option is None or option.open:
            return None
        return option if option.negated or (option.value or "").lower() == "false" else None

    def number(self, name: str) -> float | None:
        """Return an option's number; None where it is absent, open or none."""
        option = self.option(name)
        return read_number(option.value) if option and not option.open and option.value is not None else None

    def at(self, since: str = "", until: str = "") -> bool:
        """Tell whether the release lies in a range."""
        return self.release.within(since, until)

    @property
    def line(self) -> int:
        """The command's line."""
        return self.invocation.line if self.invocation else 0


class Hit(msgspec.Struct, frozen=True):
    """One place where a check finds something; ``severity`` where it differs from the check's own."""

    subject: str
    message: str
    line: int = 0
    since: str = ""
    until: str = ""
    source: str = ""
    severity: Severity | None = None


class Check(msgspec.Struct, frozen=True):
    """A check. ``title`` is one line, ``doc`` a few sentences for people, ``source`` what proves it.

    ``since`` and ``until`` bound the releases of vLLM in which it is asked at all; empty is open.
    """

    code: str
    severity: Severity
    title: str
    doc: str
    source: str
    run: Callable[[Case], Iterable[Hit]]
    since: str = ""
    until: str = ""


#: Suffixes of vLLM's integers: small ones decimal, capital ones binary (engine/arg_utils.py, human_readable_int).
_SUFFIXES = {
    "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
}  # fmt: skip
_LONGEST = 40


def read_number(text: str) -> float | None:
    """Read a number as vLLM does, with a suffix; None for anything else."""
    text = text.strip()
    if len(text) > _LONGEST or "_" in text or not text.isascii():
        return None
    factor = _SUFFIXES.get(text[-1:], 1)
    try:
        value = float(text[:-1] if factor > 1 else text) * factor
    except ValueError:
        return None
    return value if abs(value) < 1e30 else None
