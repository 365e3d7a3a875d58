"""Shell text: simple commands with the variables exported before them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from oortriage.lint.image import image_version
from oortriage.lint.inputs.words import split
from oortriage.lint.unit import Document, Kind, Setting, Unit, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
#: ``ARGS=(--a b`` whose end is on a later line.
_ARRAY = re.compile(r"(?:^|\s)[A-Za-z_]\w*\+?=\([^()]*$")
#: Commands that only print or search: what stands in their words is talk.
TALK = (
    "echo", "printf", "logger", "grep", "egrep", "rg", "sed", "awk", "cat", "log", "info", "die", "warn", "pkill",
    "pgrep", "killall", "ps", "which", "type", "[", "[[", "test", "curl", "git",
)  # fmt: skip
_CONTAINERS = ("docker", "podman", "nerdctl")
#: What a shell's grammar puts before a command.
_BEFORE = ("then", "do", "else", "{", "!", "if", "while", "until", "exec", "time")
_COMMANDS = re.compile(r"\bvllm\b|\bdcgmi\b|\bnvprof\b|\bnvidia-smi\b|VLLM_|CUDA_")
_INSTALLED = re.compile(r"^vllm(?:\[[\w,-]*\])?==([\w.+]+)$")
_DEPTH = 3
#: Lines that one command may span by quotes.
_SPAN = 400
#: Characters of one command, with the lines that continue it.
_LONGEST = 65_536


class _Line(msgspec.Struct, frozen=True):
    """A line with those that continue it; each continuation is a space and a newline."""

    text: str
    number: int


class _Script:
    """What a script has set so far."""

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self.known: dict[str, str] = dict(known or {})
        self.arrays: dict[str, tuple[Word, ...]] = {}
        self.exported: dict[str, Setting] = {}
        self._tuple: tuple[Setting, ...] = ()
        self.units: list[Unit] = []
        self.versions: list[str] = []
        self.notes: list[str] = []

    def environment(self) -> tuple[Setting, ...]:
        """Return what is exported; the same object as before while nothing changes."""
        if len(self._tuple) != len(self.exported) or any(
            one is not other for one, other in zip(self._tuple, self.exported.values(), strict=True)
        ):
            self._tuple = tuple(self.exported.values())
        return self._tuple

    def finish(self) -> list[Unit]:
        """Return all units; what is exported after the last command is one of its own."""
        last = self.units[-1].settings if self.units else ()
        if self.exported and (not self.units or last is not self.environment()):
            self.units.append(Unit(settings=self.environment()))
        return self.units


def read_shell(text: str, kind: str = "shell") -> Document:
    """Read a script, or one command line."""
    script = _Script()
    _run(script, text, 1, 0)
    made: Kind = "command" if kind == "command" else "shell"
    return Document(made, tuple(script.finish()), tuple(script.versions), tuple(script.notes))


def shell_units(text: str, line: int, known: dict[str, str] | None = None) -> tuple[list[Unit], list[str]]:
    """Read the shell text of something else: a Dockerfile's RUN, a container's ``sh -c``."""
    script = _Script(known)
    _run(script, text, line, 1)
    return script.finish(), script.versions


def words_unit(words: list[Word], depth: int = 0) -> list[Unit]:
    """Make the units of one command whose words are known already: ``docker run``, ``env X=1 vllm serve``."""
    script = _Script()
    _simple(script, words, depth)
    return script.finish()


def _run(script: _Script, text: str, first: int, depth: int) -> None:
    for line in _logical(text, first):
        if len(line.text) > _LONGEST:
            script.notes.append(f"line {line.number} is longer than {_LONGEST:,} characters and was not read")
            continue
        for words in split(line.text, line.number, script.known, script.arrays):
            _simple(script, words, depth)


def _logical(text: str, first: int) -> Iterator[_Line]:
    """Join continued lines and open quotes; leave out comments and the bodies of here-documents."""
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        number, start = first + place, place
        joined, quote = _uncommented(lines[place], "")
        while (
            (joined.endswith("\\") or quote or _is_array(joined)) and place + 1 < len(lines) and place - start < _SPAN
        ):
            place += 1
            outer = quote
            more, quote = _uncommented(lines[place], quote)
            if outer == '"' and joined.endswith("\\"):
                joined = joined[:-1] + more
            elif _is_array(joined) and not quote and not joined.endswith("\\"):
                joined += " \n" + more
            elif joined.endswith("\\") and not joined.endswith("\\\\"):
                joined = joined[:-1] + ("" if joined[-2:-1].strip() and more[:1].strip() else " \n") + more
            else:
                joined += "\n" + more
        place += 1
        yield _Line(joined, number)
        for found in _HEREDOC.finditer(joined):
            while place < len(lines) and lines[place].strip() != found[2]:
                place += 1
            place += 1


def _is_array(text: str) -> bool:
    return "=(" in text and _ARRAY.search(text) is not None


def _uncommented(line: str, quote: str) -> tuple[str, str]:
    """Cut a comment off, and say in which quote the line ends."""
    line = line.rstrip("\r")
    place = 0
    while place < len(line):
        char = line[place]
        if quote:
            if char == "\\" and quote == '"':
                place += 1
            elif char == quote:
                quote = ""
        elif char == "\\":
            place += 1
        elif char in "'\"":
            quote = char
        elif char == "#" and (place == 0 or line[place - 1] in " \t;"):
            return line[:place].rstrip(), ""
        place += 1
    return line if quote else line.rstrip(), quote


def _simple(script: _Script, words: list[Word], depth: int) -> None:
    """Take one simple command: assignments, exports, or a program with its words."""
    while words and words[0].text in _BEFORE:
        words = words[1:]
    if not words:
        return
    script.versions += [found[1] for word in words if (found := _INSTALLED.match(word.text))]
    script.versions += [version for word in words if "vllm" in word.text and (version := image_version(word.text))]
    if words[0].text in ("export", "declare", "readonly", "local"):
        exported = words[0].text == "export" or any(word.text == "-x" for word in words[1:3])
        for word in words[1:]:
            _assign(script, word, exported=exported)
        return
    if words[0].text == "unset":
        for word in words[1:]:
            script.exported.pop(word.text, None)
            script.known.pop(word.text, None)
        return
    if all(_ASSIGNMENT.fullmatch(word.text) for word in words):
        for word in words:
            name = word.text.partition("=")[0]
            _assign(script, word, exported=name in script.exported)
        return
    if words[0].text.rpartition("/")[2] in TALK:
        script.units.append(Unit(tuple(words), script.environment(), talk=True))
        return
    contained = words[0].text.rpartition("/")[2] in _CONTAINERS  # what the script exports stays outside
    script.units.append(Unit(tuple(words), () if contained else script.environment()))
    if depth < _DEPTH:
        for word in words:
            if any(char in word.text for char in " \n") and _COMMANDS.search(word.text):
                _run(script, word.text, word.line, depth + 1)


def _assign(script: _Script, word: Word, *, exported: bool) -> None:
    found = _ASSIGNMENT.fullmatch(word.text)
    if not found:
        if word.text in script.known and exported:
            script.exported[word.text] = Setting(word.text, script.known[word.text], word.line)
        return
    name, plus, value = found.groups()
    value = script.known.get(name, "") + value if plus else value
    script.known[name] = value
    if exported:
        script.exported[name] = Setting(name, value, word.line, word.open)
