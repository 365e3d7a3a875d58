"""Raw text to readable text: terminal codes, control characters and HTML entities, with a map back."""

from __future__ import annotations

import re

#: Terminal codes with a real escape character, with the escape lost, and in caret notation.
_NOISE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)"  # OSC
    r"|\x1b[@-Z\\-_]|\x1b[()][A-Z0-9]|\x1b"
    r"|\^\[\[[0-9;]{0,16}[A-Za-z]|\^\[\][^\n^]{0,80}\^G"
    r"|(?<![A-Za-z0-9_)\]])\[\d{1,3}(?:;\d{1,3}){0,4}m"
    r"|(?<=[a-z.:)])\[(?:0|\d{1,2}(?:;\d{1,3}){1,4})m"
    r"|\^M"
    r"|[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
    r"|&(?:gt|lt|amp|quot|apos|nbsp|#39|#x27|#34|#96|#x60);"
)
_ENTITIES = {
    "&gt;": ">",
    "&lt;": "<",
    "&amp;": "&",
    "&quot;": '"',
    "&apos;": "'",
    "&#39;": "'",
    "&#x27;": "'",
    "&#34;": '"',
    "&#96;": "`",
    "&#x60;": "`",
    "&nbsp;": " ",
}
#: Same-length replacements: full-width and typographic forms that editors and chat tools put in.
_SAME_LENGTH = str.maketrans(
    {
        "：": ":",  # noqa: RUF001
        "，": ",",  # noqa: RUF001
        "。": ".",
        "（": "(",  # noqa: RUF001
        "）": ")",  # noqa: RUF001
        "；": ";",  # noqa: RUF001
        "＞": ">",  # noqa: RUF001
        "＜": "<",  # noqa: RUF001
        "＝": "=",  # noqa: RUF001
        "“": '"',
        "”": '"',
        "‘": "'",  # noqa: RUF001
        "’": "'",  # noqa: RUF001
        "\u00a0": " ",
        "\u3000": " ",
        "\u2007": " ",
        "\u202f": " ",
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
    }
)
_QUICK = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\U0010ffff]|\^[M\[]|\[\d|&[a-z#]")


def clean(raw: str) -> str:
    """Take terminal codes and control characters out of a line and undo HTML entities."""
    if not _QUICK.search(raw):
        return raw
    text = _NOISE.sub(_replacement, raw)
    return text if text.isascii() else text.translate(_SAME_LENGTH)


def raw_index(raw: str, index: int) -> int:
    """Say where in the raw line the character at ``index`` of the cleaned line stands (0-based)."""
    cleaned = 0
    at = 0
    for found in _NOISE.finditer(raw):
        plain = found.start() - at
        replacement = len(_replacement(found))
        if cleaned + plain > index or (cleaned + plain == index and replacement):
            break
        cleaned += plain + replacement
        at = found.end()
    return min(at + max(0, index - cleaned), len(raw))


def _replacement(found: re.Match[str]) -> str:
    return _ENTITIES.get(found.group(), "")
