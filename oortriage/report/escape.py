"""Log text made harmless for where it lands: a terminal, a Markdown page."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~@&])")


def visible(text: str) -> str:
    r"""Write control and direction characters as ``\\x1b``, so that no terminal acts on them."""
    return _CONTROL.sub(lambda found: _escaped(found.group()), text.replace("\t", "    "))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def shorten(text: str, limit: int, keep: int = 0) -> str:
    """Cut a text to ``limit`` characters, round the character ``keep`` where that is far in."""
    if len(text) <= limit:
        return text
    start = max(0, min(keep - limit // 3, len(text) - limit + 2))
    cut = text[start : start + limit - 2]
    return ("…" if start else "") + cut + ("…" if start + limit - 2 < len(text) else "")


def markdown(text: str) -> str:
    """Escape everything Markdown or a mention could act on, in running text.

    GitHub looks for ``@name`` in the text that Markdown leaves, where a backslash is gone already;
    a space without width behind the @ stays.
    """
    escaped = _MARKDOWN.sub(r"\\\1", visible(text)).replace("\n", " ")
    return escaped.replace("@", "@\u200b")


def code_block(text: str) -> str:
    """Fence a text with more backticks than it holds."""
    body = "\n".join(visible(line) for line in text.splitlines())
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{body}\n{fence}"


def code_span(text: str) -> str:
    """Put a text in a code span with enough backticks."""
    body = visible(text).replace("\n", " ")
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if body.startswith("`") or body.endswith("`") else ""
    return f"{ticks}{pad}{body}{pad}{ticks}"
