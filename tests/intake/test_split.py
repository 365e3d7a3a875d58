"""Stretches to pieces of lines: numbers, columns, carriage returns and giant lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.line import Piece
from oortriage.intake.split import GIANT, split
from oortriage.intake.window import Anchors, Gate, Stretch

ANCHOR = "out of resource: "
GATE = Gate(Anchors((ANCHOR,), ()))


def pieces(data: bytes, *, line: int = 1, column: int = 0) -> list[Piece]:
    return list(split(Stretch(0, line, column, data), GATE))


def filled(data: bytes) -> list[tuple[int, int, str]]:
    """Number, column and text of the pieces that say something."""
    return [(one.number, one.column, one.raw) for one in pieces(data) if one.raw.strip()]


def test_lines_are_numbered_from_one() -> None:
    assert filled(b"a\nb\n\nc\n") == [(1, 0, "a"), (2, 0, "b"), (4, 0, "c")]


def test_a_last_line_without_newline_is_a_line() -> None:
    assert filled(b"a\nlast") == [(1, 0, "a"), (2, 0, "last")]


def test_a_line_break_at_the_end_begins_no_line() -> None:
    assert pieces(b"a\nb\n") == [Piece(1, 0, "a"), Piece(2, 0, "b")]


def test_blank_lines_are_pieces_too() -> None:
    assert [one.number for one in pieces(b"a\n\n\nb")] == [1, 2, 3, 4]


def test_a_stretch_from_the_middle_keeps_number_and_column() -> None:
    found = pieces(b"rest of a line\nnext", line=812, column=40)
    assert found == [Piece(812, 40, "rest of a line"), Piece(813, 0, "next")]


def test_windows_line_ends_leave_no_trace() -> None:
    assert filled(b"a\r\nb\r\n") == [(1, 0, "a"), (2, 0, "b")]


def test_a_progress_bar_keeps_one_number_and_gives_each_state_its_column() -> None:
    assert filled(b"start\n  0%|  \r 50%|##\r100%|####\ndone") == [
        (1, 0, "start"),
        (2, 0, "  0%|  "),
        (2, 8, " 50%|##"),
        (2, 16, "100%|####"),
        (3, 0, "done"),
    ]


def test_an_error_glued_to_a_progress_bar_is_a_piece_of_its_own() -> None:
    bar = "Capturing: 40%|████      | 4/10\r"
    found = filled((bar + "RuntimeError: out of memory").encode())
    assert found[1] == (1, len(bar), "RuntimeError: out of memory")


def test_blank_states_of_a_progress_bar_are_left_out() -> None:
    assert filled(b"\r\r   \rabc\r\r\n") == [(1, 6, "abc")]


def test_a_line_of_carriage_returns_does_not_shift_the_numbers() -> None:
    assert filled(b"a\n\r\r\r\nb") == [(1, 0, "a"), (3, 0, "b")]


def test_damaged_utf8_becomes_replacement_characters() -> None:
    assert filled(b"ok \xff\xfe end\nnext") == [(1, 0, "ok \ufffd\ufffd end"), (2, 0, "next")]


def test_nul_bytes_stay() -> None:
    assert filled(b"a\0b") == [(1, 0, "a\0b")]


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_line_feeds_count_as_lines(separator: str) -> None:
    """Editors and `sed -n` count line feeds, and evidence cites those numbers."""
    assert [number for number, _, _ in filled(f"a{separator}b\nc".encode())] == [1, 2]


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30),
        min_size=1,
        max_size=20,
    )
)
def test_lines_come_back_as_they_are(lines: list[str]) -> None:
    found = pieces("".join(f"{line}\n" for line in lines).encode())
    assert [one.raw for one in found] == lines
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert all(one.column == 0 for one in found)


@given(st.text(st.sampled_from("ab \r\né"), max_size=200))
def test_every_piece_stands_where_it_says(text: str) -> None:
    raw = text.split("\n")
    for one in pieces(text.encode()):
        assert raw[one.number - 1][one.column :].startswith(one.raw)
    kept = "".join(one.raw for one in pieces(text.encode()))
    assert kept.split() == text.replace("\r", " ").split() or "".join(kept.split()) == "".join(text.split())


# --- giant lines


def test_a_line_of_the_limit_is_read_whole() -> None:
    data = b"x" * GIANT
    assert [len(one.raw) for one in pieces(data)] == [GIANT]


def test_a_giant_line_without_anchor_is_clipped_to_its_start() -> None:
    data = b"start " + b"x" * 1_000_000 + b"\nnext"
    found = pieces(data)
    assert found[0].raw.startswith("start xxx")
    assert (found[0].number, found[0].column) == (1, 0)
    assert sum(len(one.raw) for one in found) < GIANT
    assert found[-1] == Piece(2, 0, "next")


@pytest.mark.parametrize("at", [0, 10, 2030, 2048, 3071, 3072, 20_000, 99_990])
def test_an_anchor_in_a_giant_line_is_kept_with_what_follows(at: int) -> None:
    message = ANCHOR + "shared memory, Required: 98304, Hardware limit: 65536."
    line = "x" * at + message + "y" * (100_000 - at)
    found = [one for one in pieces(f"first\n{line}\n".encode()) if message in one.raw]
    assert len(found) == 1
    assert found[0].number == 2
    assert found[0].column + found[0].raw.index(message) == at


@given(at=st.lists(st.integers(0, 60_000), min_size=1, max_size=20))
def test_every_anchor_of_a_giant_line_is_kept_at_its_column(at: list[int]) -> None:
    line = bytearray(b"." * 70_000)
    for start in at:
        line[start : start + len(ANCHOR)] = ANCHOR.encode()
    expected = {start for _, start, _ in GATE.hits(bytes(line))}
    found = set()
    for one in pieces(bytes(line)):
        start = one.raw.find(ANCHOR)
        while start >= 0:
            found.add(one.column + start)
            start = one.raw.find(ANCHOR, start + 1)
    assert found == expected


@pytest.mark.parametrize("gap", [0, 1, 5, 100, 1000, 3000])
def test_anchors_close_together_in_a_giant_line_are_not_cut_in_two(gap: int) -> None:
    part = ANCHOR + "." * gap
    line = part * (50_000 // len(part) + 1)
    found: set[int] = set()
    for one in pieces(line.encode()):
        start = one.raw.find(ANCHOR)
        while start >= 0:
            found.add(one.column + start)
            start = one.raw.find(ANCHOR, start + 1)
    assert found == set(range(0, len(line), len(part)))


def test_an_anchor_of_a_giant_line_keeps_its_column_behind_letters_of_several_bytes() -> None:
    """A column counts characters, as in every other line."""
    line = "ü" * 30_000 + ANCHOR + "y" * 30_000
    found = [one for one in pieces(line.encode()) if ANCHOR in one.raw]
    assert found[0].column + found[0].raw.index(ANCHOR) == 30_000


def test_dense_anchors_in_a_giant_line_stay_bounded() -> None:
    line = (ANCHOR + "x" * 200) * 50_000
    found = pieces(line.encode())
    assert len(line) > 10_000_000
    assert sum(len(one.raw) for one in found) <= 2 << 20
    assert ANCHOR in found[0].raw
    assert found[-1].column > len(line) - 3 * GIANT


def test_pieces_of_a_giant_line_do_not_overlap() -> None:
    line = ("." * 700 + ANCHOR) * 300
    end = 0
    for one in pieces(line.encode()):
        assert one.column >= end
        end = one.column + len(one.raw)


def test_lines_after_a_giant_line_keep_their_numbers() -> None:
    data = b"a\n" + b"x" * 50_000 + ANCHOR.encode() + b"x" * 50_000 + b"\nb\nc"
    numbers = {one.raw: one.number for one in pieces(data)}
    assert (numbers["a"], numbers["b"], numbers["c"]) == (1, 3, 4)


def test_the_segments_of_a_giant_progress_bar_keep_their_columns() -> None:
    bar = b"".join(b"%6d%%|#####\r" % index for index in range(5000))
    data = bar + b"RuntimeError: out of resource: shared memory"
    found = [one for one in pieces(data) if ANCHOR in one.raw]
    assert found == [Piece(1, len(bar), "RuntimeError: out of resource: shared memory")]
