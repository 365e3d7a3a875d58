"""Log text made harmless for where it lands: a terminal, a Markdown page."""

from __future__ import annotations

import re

#: Controls, directions, what has no width, tags (letters that nobody sees), and halves of pairs, which no file holds.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|!~@&$])")
#: What GitHub makes links, names or pictures of in the text that Markdown leaves. A break goes where it is broken:
#: @name, #1, GH-1, numbers of advisories, ://, www., :emoji:; and after six digits of what may be a commit.
_LINKED = re.compile(
    r"[@#]|(?:\b|(?<=_))(?:gh|ghsa|cve)-(?=\w)|:(?=//)|www(?=\.)"
    r"|:(?=(?:100|1234|[\w+-]{0,40}[a-z_+-][\w+-]{0,40}):)|[0-9a-f]{6}(?=[0-9a-f])",
    re.IGNORECASE,
)
_BREAK = "\u200b"
#: What makes a list, a rule or a heading at the beginning of a line.
_STARTS = re.compile(r"([-+=]|\d+(?=[.)]))")


def visible(text: str) -> str:
    r"""Write control and direction characters as ``\\x1b``, so that no terminal acts on them."""
    return _CONTROL.sub(lambda found: _escaped(found.group()), text.replace("\t", "    "))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, limit: int, keep: int = 0) -> str:
    """Cut a text to ``limit`` characters, round the character ``keep`` where that is far in."""
    if len(text) <= limit:
        return text
    start = max(0, min(keep - limit // 3, len(text) - limit + 2))
    cut = text[start : start + limit - 2]
    return ("…" if start else "") + cut + ("…" if start + limit - 2 < len(text) else "")


def markdown(text: str) -> str:
    """Escape everything Markdown or a mention could act on, in running text.

    GitHub looks for ``@name``, ``#1``, addresses and commits in the text that Markdown leaves, where a backslash
    is gone already; a space without width in them stays.
    """
    broken = _LINKED.sub(lambda found: found.group() + _BREAK, visible(text))
    return _MARKDOWN.sub(r"\\\1", broken).replace("\n", " ")


def paragraph(text: str) -> str:
    """Escape running text that begins a line: it is no list, rule, heading or indented code."""
    escaped = markdown(text).strip()
    found = _STARTS.match(escaped)
    if not found:
        return escaped
    if found.group().isdigit():
        return f"{found.group()}\\{escaped[found.end() :]}"
    return f"\\{escaped}"


def code_block(text: str, language: str = "text") -> str:
    """Fence a text with more backticks than it holds; ``language`` is a word of ours, not of a log."""
    body = "\n".join(visible(line) for line in text.splitlines())
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def code_span(text: str) -> str:
    """Put a text in a code span with enough backticks."""
    body = visible(text).replace("\n", " ")
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if body.startswith("`") or body.endswith("`") else ""
    return f"{ticks}{pad}{body}{pad}{ticks}"
