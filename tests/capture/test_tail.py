"""Beginning and end of an output of any length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oortriage.capture.tail import Tail


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_a_short_output_is_kept_whole(pieces: list[bytes]) -> None:
    kept = Tail()
    for piece in pieces:
        kept.add(piece)
    assert kept.text() == b"".join(pieces)


@given(st.lists(st.text(alphabet="abc", max_size=9), min_size=1, max_size=60), st.integers(1, 50))
def test_a_long_one_keeps_whole_lines_of_both_ends(lines: list[str], size: int) -> None:
    whole = "".join(f"{number} {line}\n" for number, line in enumerate(lines)).encode()
    kept = Tail(head=60, tail=200)
    for start in range(0, len(whole), size):
        kept.add(whole[start : start + size])
    text = kept.text()
    assert len(text) <= 60 + 200 + 40 + size
    known = {*whole.splitlines(), b"[oortriage: output left out here]", b""}
    assert set(text.splitlines()) <= known
    if len(whole) > 260:
        assert b"left out" in text
        assert whole.splitlines()[0] in text
        assert whole.splitlines()[-1] in text


def test_one_piece_larger_than_all() -> None:
    kept = Tail(head=4, tail=8)
    kept.add(b"x" * 100 + b"\nend\n")
    assert kept.text() == b"\n[oortriage: output left out here]\nend\n"
