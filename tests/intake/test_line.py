"""A line knows where in the raw file each of its characters stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.line import Kind, Line, Piece
from oortriage.intake.log import read_lines
from oortriage.intake.prefix import NO_PREFIX


def simple(raw: str, body: str, cleaned_from: int, *, number: int = 1, column: int = 0) -> Line:
    return Line(body, [Piece(number, column, raw)], [(0, cleaned_from)])


def test_a_new_line_is_a_message_without_prefix() -> None:
    line = simple("text", "text", 0)
    assert line.kind is Kind.MESSAGE
    assert line.prefix is NO_PREFIX
    assert line.stream == ""
    assert not line.in_prose


def test_the_number_is_that_of_the_first_piece() -> None:
    line = Line("ab", [Piece(7, 0, "a"), Piece(8, 0, "b")], [(0, 0), (1, 0)])
    assert line.number == 7


def test_columns_count_from_one() -> None:
    assert simple("text", "text", 0).place(0)[1] == 1
    assert simple("text", "text", 0).place(3)[1] == 4


def test_a_peeled_prefix_shifts_the_column() -> None:
    raw = "[rank0]: RuntimeError"
    line = simple(raw, "RuntimeError", 9)
    assert line.place(0) == (line.pieces[0], 10)
    assert raw[line.place(7)[1] - 1 :] == "Error"


def test_terminal_codes_shift_the_column() -> None:
    raw = "\x1b[31mRuntime\x1b[0mError"
    line = simple(raw, "RuntimeError", 0)
    assert raw[line.place(0)[1] - 1 :].startswith("Runtime")
    assert raw[line.place(7)[1] - 1 :] == "Error"


def test_the_start_of_a_piece_within_its_line_shifts_the_column() -> None:
    line = simple("100%", "100%", 0, number=3, column=50)
    assert line.place(2) == (line.pieces[0], 53)


def test_a_wrapped_line_names_the_piece_that_holds_the_character() -> None:
    first, second = Piece(4, 0, "Required: 983"), Piece(5, 0, "(W pid=1) 04, Hardware")
    line = Line("Required: 98304, Hardware", [first, second], [(0, 0), (13, 10)])
    assert line.place(0) == (first, 1)
    assert line.place(12) == (first, 13)
    assert line.place(13) == (second, 11)
    assert line.place(17) == (second, 15)


@given(
    st.lists(
        st.sampled_from(
            [
                "\x1b[1;36m",
                "\x1b[0m",
                "(EngineCore_DP0 pid=270) ",
                "ERROR 11-29 20:16:45 [core.py:1] ",
                "[rank3]: ",
                "Größe",
                "out of memory",
                "x",
                "\u200b",
            ]
        ),
        max_size=8,
    ),
    st.integers(0, 40),
)
def test_every_character_of_a_line_read_from_a_piece_is_where_it_says(parts: list[str], column: int) -> None:
    raw = "".join(parts)
    for line in read_lines([Piece(9, column, raw)]):
        for offset, character in enumerate(line.body):
            piece, at = line.place(offset)
            assert piece.number == 9
            assert raw[at - 1 - column] == character
