"""What every vLLM release read has: the shipped table, made by ``benchmarks/vllm_options.py`` from the wheels.

A release between two that were read has what both have; a name that only one of them has is unsure.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import msgspec

from oortriage.errors import OortriageError
from oortriage.lint.surface import Flag, Surface
from oortriage.lint.versions import Release

FILE = "vllm-options.json"


class Span(msgspec.Struct, frozen=True):
    """The releases, first and last among those read, that have a name."""

    since: str
    until: str


class FlagSpan(msgspec.Struct, frozen=True):
    """The releases in which an option is the same."""

    since: str
    until: str
    flag: Flag


class Tables(msgspec.Struct, frozen=True):
    """The shipped table. ``read`` are the releases whose files were read, oldest first."""

    about: str
    read: tuple[str, ...]
    flags: dict[str, tuple[FlagSpan, ...]]
    variables: dict[str, tuple[Span, ...]]
    keywords: dict[str, tuple[Span, ...]]
    modules: dict[str, tuple[Span, ...]]

    def surface(self, version: str) -> Surface:
        """Say what a release accepts, as far as the releases read tell."""
        wanted = Release(version)
        before = [one for one in self.read if Release(one) <= wanted]
        after = [one for one in self.read if Release(one) >= wanted]
        if before and before[-1] in after:
            return self._exact(before[-1])
        return self._between(wanted.text, before[-1:] or after[:1], after[:1] or before[-1:])

    def span(self, name: str) -> tuple[str, str]:
        """Return the first release that has a name and the last; the last is empty when the newest read has it."""
        spans: tuple[FlagSpan, ...] | tuple[Span, ...] = ()
        for table in (self.flags, self.variables, self.keywords, self.modules):
            spans = spans or table.get(name, ())
        if not spans:
            return "", ""
        return spans[0].since, "" if spans[-1].until == self.read[-1] else spans[-1].until

    def value_span(self, name: str, value: str) -> tuple[str, str]:
        """Return the first and the last release in which an option has a value among its choices."""
        spans = [one for one in self.flags.get(name, ()) if value in one.flag.choices or _takes_any(one.flag)]
        if not spans:
            return "", ""
        return spans[0].since, "" if spans[-1].until == self.read[-1] else spans[-1].until

    def _exact(self, version: str) -> Surface:
        flags = {name: span.flag for name, spans in self.flags.items() for span in spans if self._covers(span, version)}
        return Surface(
            version,
            flags,
            self._names(self.variables, version),
            self._names(self.keywords, version),
            self._names(self.modules, version),
            origin=f"the files of vLLM {version}, in the shipped table",
        )

    def _between(self, version: str, before: list[str], after: list[str]) -> Surface:
        low, high = self._exact(before[0]), self._exact(after[0])
        flags = {name: _both(low.flags[name], high.flags[name]) for name in low.flags.keys() & high.flags.keys()}
        unsure: set[str] = set()
        pairs: list[tuple[Iterable[str], Iterable[str]]] = [
            (low.flags, high.flags), (low.variables, high.variables), (low.keywords, high.keywords),
            (low.modules, high.modules),
        ]  # fmt: skip
        for one, other in pairs:
            unsure |= set(one) ^ set(other)
        near = f"{before[0]} and {after[0]}" if before != after else f"{before[0]}, the nearest read"
        return Surface(
            version,
            flags,
            low.variables & high.variables,
            low.keywords & high.keywords,
            low.modules & high.modules,
            frozenset(unsure),
            f"vLLM {version} is not in the shipped table: judged by {near}",
        )

    def _names(self, table: dict[str, tuple[Span, ...]], version: str) -> frozenset[str]:
        return frozenset(name for name, spans in table.items() if any(self._covers(one, version) for one in spans))

    def _covers(self, span: Span | FlagSpan, version: str) -> bool:
        place = self._places[version]
        return self._places[span.since] <= place <= self._places[span.until]

    @property
    def _places(self) -> dict[str, int]:
        return _places(self.read)


@functools.lru_cache(maxsize=4)
def _places(read: tuple[str, ...]) -> dict[str, int]:
    return {version: number for number, version in enumerate(read)}


def build(surfaces: list[Surface], about: str) -> Tables:
    """Put releases, oldest first, together to a table."""
    read = tuple(one.version for one in surfaces)
    flags: dict[str, tuple[FlagSpan, ...]] = {}
    for name in sorted({name for one in surfaces for name in one.flags}):
        spans: list[FlagSpan] = []
        for number, one in enumerate(surfaces):
            flag = one.flags.get(name)
            if flag is None:
                continue
            last = spans[-1] if spans else None
            if last and last.flag == flag and number and last.until == read[number - 1]:
                spans[-1] = FlagSpan(last.since, one.version, flag)
            else:
                spans.append(FlagSpan(one.version, one.version, flag))
        flags[name] = tuple(spans)
    return Tables(
        about,
        read,
        flags,
        _spans(read, [one.variables for one in surfaces]),
        _spans(read, [one.keywords for one in surfaces]),
        _spans(read, [one.modules for one in surfaces]),
    )


def _spans(read: tuple[str, ...], names: list[frozenset[str]]) -> dict[str, tuple[Span, ...]]:
    made: dict[str, tuple[Span, ...]] = {}
    for name in sorted({name for one in names for name in one}):
        spans: list[Span] = []
        for number, version in enumerate(read):
            if name not in names[number]:
                continue
            if spans and number and spans[-1].until == read[number - 1]:
                spans[-1] = Span(spans[-1].since, version)
            else:
                spans.append(Span(version, version))
        made[name] = tuple(spans)
    return made


def _takes_any(flag: Flag) -> bool:
    return flag.kind in ("int", "size", "size_or_auto", "unknown") or (flag.kind == "text" and not flag.choices)


def _both(one: Flag, other: Flag) -> Flag:
    """Return an option that takes what either takes."""
    if one == other:
        return one
    kind = one.kind if one.kind == other.kind else "unknown"
    choices = tuple(dict.fromkeys(one.choices + other.choices)) if one.choices and other.choices else ()
    bounds = one.bounds if one.bounds == other.bounds else ()
    aliases = tuple(name for name in one.aliases if name in other.aliases)
    return Flag(kind, choices, aliases, one.optional or other.optional, bounds, deprecated=one.deprecated)


@functools.cache
def tables() -> Tables:
    """Load the shipped table.

    Raises:
        OortriageError: the installation lacks it, or it is damaged.
    """
    root = Path(__file__).resolve().parent.parent
    path = next(
        (one for one in (root / "_data" / "tables" / FILE, root.parent / "tables" / FILE) if one.is_file()), None
    )
    if path is None:
        raise OortriageError(f"this installation has no {FILE}")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Tables)
    except (OSError, msgspec.DecodeError) as problem:
        raise OortriageError(f"{path}: cannot be read: {problem}") from problem


@functools.lru_cache(maxsize=128)
def shipped_surface(version: str) -> Surface:
    """Say what a release accepts, by the shipped table; asked again, it is not computed again.

    Raises:
        UsageError: it is no version.
    """
    return tables().surface(version)
