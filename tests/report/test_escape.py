"""Log text made harmless: nothing acts on it, and it still reads as it was."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from oortriage.report.escape import code_block, code_span, markdown, shorten, visible
from tests.report._made import hostile

#: Unicode's Bidi_Control characters.
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
#: What a log line can hold between its first and its last visible character.
words = hostile.map(lambda text: f"a{text}z")
lines = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"a{text}z")


def flat(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in (token, *(token.children or []))]


def types(source: str) -> list[str]:
    return [token.type for token in flat(parser.parse(source))]


def text_of(source: str) -> str:
    """Read what a renderer would show; spaces without width are how mentions and links are stopped."""
    shown = [one.content for one in flat(parser.parse(source)) if one.type in ("text", "code_inline")]
    return "".join(shown).replace("\u200b", "")


@given(lines | words)
def test_no_control_character_stays(text: str) -> None:
    left = {one for one in visible(text) if unicodedata.category(one) == "Cc"}
    assert left <= {"\n"}


@pytest.mark.parametrize("mark", list(BIDI), ids=lambda mark: f"U+{ord(mark):04X}")
def test_no_direction_character_stays(mark: str) -> None:
    assert visible(f"a{mark}z") == f"a\\u{ord(mark):04x}z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]8;;https://x\x07y", "\\x1b]8;;https://x\\x07y"),
        ("\x9b2J", "\\x9b2J"),
        ("a\x00b\x7fc", "a\\x00b\\x7fc"),
        ("one\rtwo", "one\\x0dtwo"),
        ("a\tb", "a    b"),
        ("\ufeffa\u200bb\u2028c", "\\ufeffa\\u200bb\\u2028c"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_letters_of_all_scripts_stay(text: str) -> None:
    assert visible(text) == text


@given(words)
def test_what_is_visible_stays_visible(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(text=st.text("abc ", max_size=80), limit=st.integers(10, 60), data=st.data())
def test_a_cut_text_is_a_part_round_the_wanted_character(text: str, limit: int, data: st.DataObject) -> None:
    keep = data.draw(st.integers(0, max(0, len(text) - 1)))
    cut = shorten(text, limit, keep)
    assert len(cut) <= limit
    inner = cut.removeprefix("…").removesuffix("…")
    assert inner in text
    if len(text) <= limit:
        assert cut == text
        return
    places = [at for at in range(len(text)) if text.startswith(inner, at)]
    assert any(at <= keep < at + len(inner) for at in places)


def test_a_cut_is_marked_where_it_was_made() -> None:
    text = "0123456789" * 10
    assert shorten(text, 12) == "0123456789…"
    assert shorten(text, 12, 99) == "…0123456789"
    middle = shorten(text, 12, 50)
    assert (middle[0], middle[-1]) == ("…", "…")
    assert len(middle) == 12


@given(words)
def test_running_text_stays_one_paragraph_without_markup(text: str) -> None:
    found = types(markdown(text))
    assert found[:2] == ["paragraph_open", "inline"]
    assert found[-1] == "paragraph_close"
    assert set(found[2:-1]) <= {"text", "code_inline"}


@given(words)
def test_running_text_reads_as_it_was(text: str) -> None:
    """Entities included: a log that says ``&lt;`` is shown saying ``&lt;``."""
    assert text_of(markdown(text)) == visible(text)


@given(words)
def test_running_text_stays_in_its_table_cell(text: str) -> None:
    found = types(f"| head | head |\n|---|---|\n| {markdown(text)} | end |")
    assert found.count("tr_open") == 2
    assert found.count("td_open") == 2
    assert set(found) <= {
        "table_open", "thead_open", "tr_open", "th_open", "inline", "text", "code_inline", "th_close", "tr_close", "thead_close",
        "tbody_open", "td_open", "td_close", "tbody_close", "table_close",
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["@octocat", "@org/team", "see @octocat.", "(@octocat)", "-@octocat", "&commat;octocat", "&#64;octocat"]
)
def test_running_text_mentions_nobody(name: str) -> None:
    """GitHub looks for ``@name`` in the text that Markdown leaves, so a backslash does not help.

    https://github.com/github/markup/issues/1168, https://github.com/github/cmark-gfm/issues/389
    """
    found = flat(parser.parse(markdown(f"by {name} here")))
    shown = "".join(token.content if token.type == "text" else " " for token in found)
    assert not re.search(r"(?<!\w)@\w", shown)


@given(words)
def test_a_code_span_holds_its_text_and_nothing_else(text: str) -> None:
    found = flat(parser.parse(code_span(text)))
    assert [token.type for token in found] == [
        "paragraph_open",
        "inline",
        "code_inline",
        "paragraph_close",
    ]
    assert found[2].content == visible(text)


@pytest.mark.parametrize("text", ["`", "``", "`a", "a`", "``a``", "a ` b `` c ``` d"])
def test_backticks_at_the_ends_of_a_code_span_stay(text: str) -> None:
    (span,) = [token for token in flat(parser.parse(code_span(text))) if token.type == "code_inline"]
    assert span.content == text


@given(st.lists(words, min_size=1, max_size=4))
def test_a_code_block_holds_its_lines_and_nothing_else(texts: list[str]) -> None:
    source = "\n".join(texts)
    (fence,) = parser.parse(code_block(source))
    assert fence.type == "fence"
    assert fence.info == "text"
    assert fence.content == "".join(f"{visible(line)}\n" for line in source.splitlines())


def test_a_code_block_ends_where_it_should() -> None:
    source = f"before\n\n{code_block('```' + chr(10) + '# no heading')}\n\nafter"
    assert types(source) == [
        "paragraph_open", "inline", "text", "paragraph_close",
        "fence",
        "paragraph_open", "inline", "text", "paragraph_close",
    ]  # fmt: skip
