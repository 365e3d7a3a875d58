"""Dockerfiles: what ENV sets, what RUN, CMD and ENTRYPOINT start, which vLLM the base image holds."""

from __future__ import annotations

import json
import re
import shlex

from oortriage.lint.image import image_version, is_server_image
from oortriage.lint.inputs.expand import expand
from oortriage.lint.inputs.shell import shell_units
from oortriage.lint.unit import Document, Setting, Unit, Word

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


def read_dockerfile(text: str) -> Document:
    """Read a Dockerfile: one unit for what the container starts, one for each command of RUN."""
    arguments: dict[str, str] = {}
    settings: dict[str, Setting] = {}
    units: list[Unit] = []
    versions: list[str] = []
    image = ""
    entry: list[Word] | None = None
    command: list[Word] | None = None
    for line, name, rest in _instructions(text):
        if name == "FROM":
            image, is_open = expand(rest.split()[0] if rest.split() else "", arguments)
            settings, entry, command = {}, None, None  # another stage starts anew
            if not is_open and (version := image_version(image)):
                versions.append(version)
        elif name == "ARG":
            key, mark, value = rest.partition("=")
            if mark:
                arguments[key.strip()] = value.strip().strip("\"'")
        elif name == "ENV":
            for setting in _settings(rest, line, arguments):
                settings[setting.name] = setting
                arguments[setting.name] = setting.value
        elif name == "RUN":
            more, installed = shell_units(rest, line, arguments)
            units += more
            versions += installed
        elif name in ("CMD", "ENTRYPOINT"):
            words = _words(rest, line, arguments)
            entry, command = (words, None) if name == "ENTRYPOINT" else (entry, words)
    started = tuple((entry or []) + (command or []))
    if started or settings:
        server = entry is None and is_server_image(image)
        units.append(Unit(started, tuple(settings.values()), image, server))
    return Document("dockerfile", tuple(units), tuple(versions))


def _instructions(text: str) -> list[tuple[int, str, str]]:
    """Join continued lines, without the comments and empty lines between them; keep the first line's number."""
    found: list[tuple[int, str, str]] = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        line, place = lines[place].rstrip("\r"), place + 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        number, whole = place, line
        while whole.rstrip().endswith("\\") and place < len(lines):
            more, place = lines[place].rstrip("\r"), place + 1
            comment = not more.strip() or more.lstrip().startswith("#")
            # The newlines stay, so that words know their line.
            whole = f"{whole.rstrip()[:-1]} \n{' ' + chr(92) if comment else more}"
        for mark in _HEREDOC.finditer(whole):
            body: list[str] = []
            while place < len(lines) and lines[place].strip() != mark[2]:
                body.append(lines[place])
                place += 1
            place += 1
            whole = _HEREDOC.sub("", whole, count=1) + "\n" + "\n".join(body)
        if match := _INSTRUCTION.match(whole):
            found.append((number, match[1].upper(), match[2].strip()))
    return found


def _settings(rest: str, line: int, known: dict[str, str]) -> list[Setting]:
    """Read ``ENV A=b C="d e"`` and the old ``ENV A b``."""
    first = rest.split(None, 1)[0] if rest.split() else ""
    if "=" not in first:
        name, _, value = rest.partition(" ")
        text, is_open = expand(value.strip(), known)
        return [Setting(name, text, line, is_open)]
    try:
        words = shlex.split(rest.replace("\\\n", " "))
    except ValueError:
        words = rest.split()
    made = []
    for word in words:
        name, mark, value = word.partition("=")
        if mark:
            text, is_open = expand(value, known)
            made.append(Setting(name, text, line, is_open))
    return made


def _words(rest: str, line: int, known: dict[str, str]) -> list[Word]:
    """Read the words of CMD: a JSON list, or shell text, of which the last command counts."""
    if rest.startswith("["):
        try:
            listed = json.loads(rest.replace("\\\n", " "))
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list):
            return [Word(text, line, is_open) for text, is_open in (expand(str(one), known) for one in listed)]
    units, _ = shell_units(rest, line, known)
    return list(units[-1].words) if units else []
