"""The question before a report leaves with its secrets in it."""

from __future__ import annotations

#: What the user has to type.
WORD = "publish"
QUESTION = f"The report is not redacted: tokens, names and prompts of the log stay in it. Type {WORD!r} to go on: "


def confirm_unredacted(word: str) -> bool:
    """Say whether the answer to ``QUESTION`` means yes. Blanks round it do not matter; nothing else does for a yes."""
    return word.strip() == WORD
