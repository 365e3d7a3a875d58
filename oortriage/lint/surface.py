"""What one vLLM release accepts: its flags, its environment variables, the keywords of its Python classes."""

from __future__ import annotations

from typing import Literal

import msgspec

#: ``switch``: takes no value; ``pair``: ``--x`` and ``--no-x``; ``size``: an integer with a suffix such as 25G;
#: ``size_or_auto``: that, -1 or ``auto``; ``list``: several values; ``choice``: one of ``choices``; ``unknown``: the
#: source does not say it in a form that is understood, so that any value passes.
Kind = Literal[
    "switch", "pair", "int", "float", "size", "size_or_auto", "text", "json", "choice", "list", "unknown"
]  # fmt: skip


class Flag(msgspec.Struct, frozen=True, omit_defaults=True):
    """One option of the command line.

    ``choices`` of a ``text`` are the built-in values, which a plug-in may add to; ``optional`` tells that it may
    stand without a value; ``bounds`` are conditions as vLLM's field states them (``gt 0``); ``default`` is a literal
    one, as text.
    """

    kind: Kind = "unknown"
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    optional: bool = False
    bounds: tuple[str, ...] = ()
    default: str = ""
    deprecated: bool = False


class Surface(msgspec.Struct, frozen=True):
    """What a release accepts.

    The names in ``unsure`` are those that one of the releases read before and after it has and the other has not.
    ``origin`` says where all this comes from, for people.
    """

    version: str
    flags: dict[str, Flag]
    variables: frozenset[str]
    keywords: frozenset[str]
    modules: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    origin: str = ""
