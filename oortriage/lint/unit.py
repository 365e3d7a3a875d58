"""What is linted, after parsing: words of a command with the environment it starts in, each with its line."""

from __future__ import annotations

from typing import Literal

import msgspec


class Word(msgspec.Struct, frozen=True):
    """A word of a command. ``open``: it holds something that only a shell or a template engine knows."""

    text: str
    line: int = 0
    open: bool = False


class Setting(msgspec.Struct, frozen=True):
    """An environment variable with its value."""

    name: str
    value: str
    line: int = 0
    open: bool = False


class Call(msgspec.Struct, frozen=True):
    """A call such as ``LLM(model="m", block_size=64)``: the class's name and its keywords."""

    name: str
    keywords: tuple[tuple[str, Word], ...]
    line: int = 0


class Unit(msgspec.Struct, frozen=True):
    """One process: its words, or a call in Python, and the environment that is known.

    ``image`` is the container image it runs in; ``server`` tells that the words are arguments for the image's own
    entry point. ``talk`` tells that the command only prints or searches its words. ``late`` are
    variables that a Python file sets after it imported vLLM.
    """

    words: tuple[Word, ...] = ()
    settings: tuple[Setting, ...] = ()
    image: str = ""
    server: bool = False
    talk: bool = False
    call: Call | None = None
    late: tuple[Setting, ...] = ()


Kind = Literal["command", "shell", "dockerfile", "compose", "kubernetes", "systemd", "dotenv", "python", "options"]


class Document(msgspec.Struct, frozen=True):
    """A parsed input. ``versions`` are releases of vLLM that it names itself (an image's tag, ``pip install``)."""

    kind: Kind
    units: tuple[Unit, ...]
    versions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
