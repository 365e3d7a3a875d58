"""One command taken apart as vLLM's parser would: its options with their values, in the light of one release."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from oortriage.lint.image import is_server_image
from oortriage.lint.surface import Flag, Surface
from oortriage.lint.unit import Setting, Unit, Word

#: ``serve``: the console script; ``openai``: the server's module; ``demo``: the demonstration server's; ``llm``: a
#: call in Python; ``other``: another verb of vLLM's, whose options are not known here.
Program = Literal["serve", "openai", "demo", "llm", "other"]
How = Literal["exact", "prefix", "ambiguous", "absent"]

_MODULES: dict[str, Program] = {"vllm.entrypoints.openai.api_server": "openai", "vllm.entrypoints.api_server": "demo"}
_VERBS = ("bench", "chat", "complete", "run-batch", "collect-env", "launch")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"-\d+(?:\.\d+)?$|-\.\d+$")
_COMPILATION = re.compile(r"-O(?:[0-9.].*|)$")


class Option(msgspec.Struct, frozen=True):
    """An option as it was written (``written``) and as vLLM takes it (``name``); ``value`` is None without one.

    ``candidates`` are the options that an ambiguous abbreviation may mean; ``negated`` is ``--no-...``.
    """

    written: str
    name: str
    value: str | None
    line: int
    open: bool
    how: How
    flag: Flag | None = None
    negated: bool = False
    attached: bool = False
    dotted: bool = False
    candidates: tuple[str, ...] = ()


class Invocation(msgspec.Struct, frozen=True):
    """A command that starts vLLM. ``module`` is what ``python -m`` runs; ``stray`` are words that belong nowhere."""

    program: Program
    options: tuple[Option, ...]
    model: str
    line: int
    module: str = ""
    stray: tuple[Word, ...] = ()
    positional: bool = False

    def last(self, name: str) -> Option | None:
        """Return an option's last occurrence, which is the one that counts."""
        return next((one for one in reversed(self.options) if one.name == name), None)


def settings_of(unit: Unit) -> tuple[Setting, ...]:
    """Return the environment of a unit: what is known, and what stands before the program in its own words."""
    if unit.talk:
        return unit.settings
    made = list(unit.settings)
    place = _program(unit)
    before = unit.words[: place[1]] if place else _leading(unit.words)
    expects = False
    for word in before:
        text = word.text
        if text in ("-e", "--env"):
            expects = True
            continue
        found = _ASSIGNMENT.fullmatch(text.removeprefix("--env="))
        if found and (expects or not text.startswith("-") or text.startswith("--env=")):
            made.append(Setting(found[1], found[2], word.line, word.open))
        expects = False
    return tuple({one.name: one for one in made}.values())


def _leading(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the assignments that stand before any program, also after ``env`` and ``docker run``."""
    if words and words[0].text.rpartition("/")[2] in ("docker", "podman", "nerdctl", "env", "sudo"):
        return words
    count = next((n for n, one in enumerate(words) if not _ASSIGNMENT.fullmatch(one.text)), len(words))
    return words[:count]


def invocation_of(unit: Unit, surface: Surface) -> Invocation | None:
    """Read a unit's command; None where it starts no vLLM."""
    if unit.call:
        options = tuple(
            Option(name, "--" + name.replace("_", "-"), word.text, word.line, word.open, "exact",
                   surface.flags.get("--" + name.replace("_", "-")))
            for name, word in unit.call.keywords
        )  # fmt: skip
        model = next((word.text for name, word in unit.call.keywords if name == "model" and not word.open), "")
        return Invocation("llm", options, model, unit.call.line)
    place = _program(unit)
    if place is None or unit.talk:
        return None
    program, start, module = place
    words = unit.words[start:]
    line = (unit.words[max(0, start - 1)] if unit.words else Word("")).line
    if program == "other":
        return Invocation("other", (), "", line)
    return _Parser(surface, words, program, line, module).parse()


def _program(unit: Unit) -> tuple[Program, int, str] | None:
    """Find which program of vLLM's a command starts, and where its own words begin."""
    words = unit.words
    if unit.server:
        return "openai", 2 if [one.text for one in words[:2]] == ["vllm", "serve"] else 0, ""
    image = -1
    for place, word in enumerate(words):
        base = word.text.replace("\\", "/").rpartition("/")[2]
        after = words[place + 1].text if place + 1 < len(words) else ""
        if after == "serve" and (base in ("vllm", "vllm.exe") or (word.open and "vllm" in base.lower())):
            return "serve", place + 2, ""
        if base in ("vllm", "vllm.exe") and after in _VERBS:
            return "other", place + 2, ""
        if word.text == "-m" and after in _MODULES:
            return _MODULES[after], place + 2, after
        if word.text == "-m" and after in ("vllm", "vllm.entrypoints.cli.main"):
            serve = place + 2 < len(words) and words[place + 2].text == "serve"
            return ("serve", place + 3, "") if serve else None
        if word.text.endswith("vllm/entrypoints/openai/api_server.py"):
            return "openai", place + 1, ""
        if image < 0 and place and is_server_image(word.text) and not word.text.startswith("-"):
            image = place
    pulled = any(one.text in ("pull", "build", "push", "tag", "inspect", "rmi", "FROM") for one in words[:2])
    return ("openai", image + 1, "") if image >= 0 and not pulled else None


class _Parser:
    """argparse's rules, with vLLM's additions: underscores for dashes, ``--json.key value``, ``-O3``."""

    def __init__(self, surface: Surface, words: tuple[Word, ...], program: Program, line: int, module: str) -> None:
        self._surface, self._words, self._program, self._line, self._module = surface, words, program, line, module
        self._aliases = {alias: name for name, flag in surface.flags.items() for alias in flag.aliases}
        self._place = 0
        self._model = False
        self._known: dict[str, tuple[str, How, tuple[str, ...]]] = {}

    def parse(self) -> Invocation:
        options: list[Option] = []
        free: list[Word] = []
        while self._place < len(self._words):
            word = self._words[self._place]
            self._place += 1
            if word.text == "--":
                free += self._words[self._place :]
                break
            if not self._is_option(word):
                free.append(word)
                self._model = True
            elif not (word.open and "$" in word.text.partition("=")[0]) and "{{" not in word.text.partition("=")[0]:
                options.append(self._option(word))
        has_model = self._program in ("serve", "openai")
        first = free[0] if free and has_model else None
        named = next((one.value or "" for one in reversed(options) if one.name == "--model"), "")
        return Invocation(
            self._program, tuple(options), first.text if first else named, self._line, self._module,
            tuple(one for one in free[1 if has_model else 0 :] if not one.open), first is not None,
        )  # fmt: skip

    def _is_option(self, word: Word) -> bool:
        text = word.text
        return text.startswith("-") and len(text) > 1 and not _NUMBER.match(text) and " " not in text.partition("=")[0]

    def _option(self, word: Word) -> Option:
        written, mark, value = word.text.partition("=")
        if not written.startswith("--"):
            return self._short(word)
        base, dot, _ = written.replace("_", "-").partition(".")
        base = base.rstrip("+")
        name, how, candidates = self._resolve(base)
        flag = self._surface.flags.get(name)
        negated = False
        if flag is None and how == "absent" and base.startswith("--no-"):
            positive = "--" + base[5:]
            if positive in self._surface.flags:
                name, flag, negated, how = positive, self._surface.flags[positive], True, "exact"
        elif base.startswith("--no-") and name.startswith("--no-") and flag is None:
            name, negated = "--" + name[5:], True
            flag = self._surface.flags.get(name)
        taken, is_open = (value, word.open) if mark else self._value(flag, negated=negated)
        return Option(
            written, name, taken, word.line, is_open, how, flag, negated, bool(mark), bool(dot), candidates
        )  # fmt: skip

    def _short(self, word: Word) -> Option:
        """Read ``-tp 2``, ``-tp=2``, ``-cc.mode=0``, ``-O3``, ``-O.level=3``."""
        written, mark, value = word.text.partition("=")
        if _COMPILATION.match(written):
            return self._level(word)
        base, dot, _ = written.partition(".")
        name = self._aliases.get(base, base)
        flag = self._surface.flags.get(name)
        taken, is_open = (value, word.open) if mark else self._value(flag, negated=False)
        how: How = "exact" if flag else "absent"
        return Option(written, name, taken, word.line, is_open, how, flag, attached=bool(mark), dotted=bool(dot))

    def _level(self, word: Word) -> Option:
        """Read ``-O``: up to 0.11.2 another name of ``--compilation-config``; then a level, and with a dot the old."""
        written, mark, _ = word.text.partition("=")
        named = self._aliases.get("-O", "")
        later = "--compilation-config" if "." in written else "--optimization-level"
        name = named or (later if "--optimization-level" in self._surface.flags else "-O")
        flag = self._surface.flags.get(name)
        how: How = "exact" if flag else "absent"
        if written == "-O" and not mark:
            taken, is_open = self._value(flag, negated=False)
            return Option(written, name, taken, word.line, is_open, how, flag, dotted=True)
        return Option("-O", name, word.text[2:], word.line, word.open, how, flag, attached=True, dotted=True)

    def _resolve(self, base: str) -> tuple[str, How, tuple[str, ...]]:
        if base not in self._known:
            self._known[base] = self._find(base)
        return self._known[base]

    def _find(self, base: str) -> tuple[str, How, tuple[str, ...]]:
        """Find the option a name means: itself, another name of one, or the only one that begins so."""
        flags = self._surface.flags
        if base in flags:
            return base, "exact", ()
        if base in self._aliases:
            return self._aliases[base], "exact", ()
        if base.startswith("--no-") and "--" + base[5:] in flags:
            return base, "absent", ()
        every = [*flags, *(one for one in self._aliases if one.startswith("--"))]
        every += ["--no-" + name[2:] for name, flag in flags.items() if flag.kind == "pair"]
        found = sorted(one for one in every if one.startswith(base)) if len(base) > 2 else []
        if len(found) == 1:
            return self._aliases.get(found[0], found[0]), "prefix", ()
        return (base, "ambiguous", tuple(found)) if found else (base, "absent", ())

    def _value(self, flag: Flag | None, *, negated: bool) -> tuple[str | None, bool]:
        """Take the words that belong to an option; of a list the last word is kept."""
        if negated or (flag and flag.kind in ("switch", "pair")):
            return None, False
        taken: list[Word] = []
        while self._place < len(self._words) and not self._is_option(self._words[self._place]):
            taken.append(self._words[self._place])
            self._place += 1
            # An option that is not known takes all that stands there: how many values it has, nobody can tell.
            if flag is None and self._model:
                continue
            if flag is None or flag.kind != "list":
                break
        if not taken:
            return None, False
        return taken[-1].text, any(one.open for one in taken)
