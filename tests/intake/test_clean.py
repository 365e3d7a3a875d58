"""Raw text to readable text, and from there back to the raw column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.clean import clean, raw_index

#: Pieces of noise that vanish: real escapes, caret notation, control and zero-width characters.
#: The form with the escape lost ("[1;36m") depends on what stands before it and has its own tests.
VANISHING = [
    "\x1b[0m",
    "\x1b[1;36m",
    "\x1b[38;2;255;0;0m",
    "\x1b[2K",
    "\x1b[?25l",
    "\x1b]0;title\x07",
    "\x1b]8;;https://example.org\x1b\\",
    "\x1bM",
    "\x1b(B",
    "^[[0;0m",
    "^[[1;36m",
    "^M",
    "\x00",
    "\x08",
    "\x0c",
    "\x7f",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\u202e",
]
WIDE = {
    "：": ":",
    "，": ",",
    "。": ".",
    "（": "(",
    "）": ")",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "\u00a0": " ",
    "\u3000": " ",
    "０": "0",
    "９": "9",
}
ENTITIES = {
    "&gt;": ">",
    "&lt;": "<",
    "&amp;": "&",
    "&quot;": '"',
    "&#39;": "'",
    "&#x27;": "'",
    "&#96;": "`",
    "&nbsp;": " ",
}
PLAIN = st.text("abz 0159.,:()-_/%äé中😀", max_size=8)


def test_plain_text_is_unchanged() -> None:
    text = "RuntimeError: CUDA error: out of memory (GPU 0; 1 < 2 & 3 > 2) [rank0] a[0] x^2 \t."
    assert clean(text) == text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        # real escape characters
        ("\x1b[1;36m(EngineCore pid=1)\x1b[0;0m ERROR", "(EngineCore pid=1) ERROR"),
        # the escape lost on the way (vllm PR 17744)
        ("[1;36m(EngineCore pid=1)[0;0m ERROR", "(EngineCore pid=1) ERROR"),
        ("[31mRuntimeError: out of memory[0m", "RuntimeError: out of memory"),
        # caret notation (FlagTree 352, aiter 3956)
        ("^[[1;36m(EngineCore pid=1)^[[0;0m ERROR^M", "(EngineCore pid=1) ERROR"),
        ("^[[33mWARNING^[[0m", "WARNING"),
    ],
)
def test_colours_vanish_in_all_three_forms(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@pytest.mark.parametrize("noise", VANISHING)
def test_a_code_inside_a_word_vanishes(noise: str) -> None:
    assert clean(f"out of{noise} memory") == "out of memory"


@pytest.mark.parametrize(
    "text",
    [
        "tensor[0]",
        "a[1]m",
        "shape [2, 3] mm",
        "bench[12m]",
        "list[3mm]",
        "GPU[0]m",
        "[2/0] out of resource",
        "[15/4] torch",
        "[rank0]: x",
        "[1,0]<stdout>: x",
        "[0] NCCL",
    ],
)
def test_brackets_of_ordinary_text_stay(text: str) -> None:
    assert clean(text) == text


def test_tabs_stay() -> None:
    assert clean("a\tb\x00") == "a\tb"


def test_an_unfinished_code_does_not_eat_the_rest() -> None:
    assert clean("\x1b]0;never closed out of memory").endswith("out of memory")
    assert clean("out of memory\x1b[").startswith("out of memory")
    assert clean("out of memory\x1b") == "out of memory"


@pytest.mark.parametrize(("raw", "expected"), ENTITIES.items())
def test_html_entities_are_undone(raw: str, expected: str) -> None:
    assert clean(f"a {raw} b") == f"a {expected} b"


def test_an_entity_is_undone_once() -> None:
    assert clean("&amp;gt;") == "&gt;"


def test_other_ampersands_stay() -> None:
    text = "a && b & c &unknown; &gt"
    assert clean(text) == text


@pytest.mark.parametrize(("raw", "expected"), WIDE.items())
def test_full_width_and_typographic_forms_become_plain(raw: str, expected: str) -> None:
    assert clean(f"a{raw}b") == f"a{expected}b"


def test_a_chinese_error_line_is_readable() -> None:
    raw = "报错：out of resource： shared memory，Required： １３１０７２，Hardware limit： ６５５３６。"
    expected = "报错:out of resource: shared memory,Required: 131072,Hardware limit: 65536."
    assert clean(raw) == expected


@pytest.mark.parametrize(
    ("raw", "index", "expected"),
    [
        ("abc", 1, 1),
        ("\x1b[1;36mabc", 0, 7),
        ("\x1b[1;36mabc", 2, 9),
        ("a\x1b[0mb", 1, 5),
        ("a\x1b[0m\x1b[1mb", 1, 9),
        ("[1;36m(E", 0, 6),
        ("^[[0;0mE", 0, 7),
        ("\x00\x00a", 0, 2),
        ("a &gt; b", 2, 2),
        ("a &gt; b", 3, 6),
        ("&amp;&amp;x", 1, 5),
        ("&amp;&amp;x", 2, 10),
        ("a\x1b[0m&gt;b", 1, 5),
        ("abc", 3, 3),
        ("abc\x1b[0m", 99, 7),
        ("", 0, 0),
    ],
)
def test_raw_index_by_hand(raw: str, index: int, expected: int) -> None:
    assert raw_index(raw, index) == expected


@given(st.lists(st.one_of(PLAIN, st.sampled_from(VANISHING), st.sampled_from(list(WIDE))), max_size=12))
def test_every_cleaned_character_is_found_again_in_the_raw_line(parts: list[str]) -> None:
    raw = "".join(parts)
    text = clean(raw)
    places = [raw_index(raw, index) for index in range(len(text))]
    assert places == sorted(set(places))
    for character, place in zip(text, places, strict=True):
        assert WIDE.get(raw[place], raw[place]) == character


@given(st.lists(st.one_of(PLAIN, st.sampled_from(VANISHING), st.sampled_from(list(ENTITIES))), max_size=12))
def test_with_entities_the_place_is_where_the_entity_begins(parts: list[str]) -> None:
    raw = "".join(parts)
    text = clean(raw)
    for index, character in enumerate(text):
        rest = raw[raw_index(raw, index) :]
        assert rest[0] == character or any(
            rest.startswith(entity) for entity, meant in ENTITIES.items() if meant == character
        )


@given(st.lists(st.one_of(PLAIN, st.sampled_from(VANISHING)), max_size=12))
def test_noise_between_plain_parts_leaves_the_plain_parts(parts: list[str]) -> None:
    plain = [part for part in parts if part not in VANISHING]
    # Parts are kept apart, so that a lone escape cannot reach into the next part.
    assert clean("".join(parts)) == "".join(plain)


@given(st.text(max_size=80))
def test_no_control_character_survives(raw: str) -> None:
    text = clean(raw)
    assert not any(ord(character) < 32 and character not in "\t\n" for character in text)
    assert "\x1b" not in text
    assert "\x7f" not in text


@given(st.text(max_size=80), st.integers(0, 100))
def test_raw_index_stays_in_the_line(raw: str, index: int) -> None:
    assert 0 <= raw_index(raw, index) <= len(raw)


@given(st.text("\x1b[]()0;1m^M&gt#39x\x07\\ ", max_size=60))
def test_raw_index_fits_whatever_is_cleaned(raw: str) -> None:
    text = clean(raw)
    places = [raw_index(raw, index) for index in range(len(text))]
    assert places == sorted(set(places))
    assert all(place < len(raw) for place in places)
