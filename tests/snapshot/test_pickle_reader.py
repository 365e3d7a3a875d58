"""Pickles as data: plain values come out as they went in, and nothing else comes out at all."""

from __future__ import annotations

import collections
import contextlib
import datetime as dt
import os
import pickle
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import InputError
from oortriage.snapshot.pickle_reader import MAX_NUMBER_BYTES, read_pickle
from tests.snapshot import allocator

scalars = (
    st.none() | st.booleans() | st.integers(-(2**120), 2**120) | st.floats(allow_nan=False) | st.text(max_size=300)
)
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text(max_size=20) | st.integers(), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(deadline=None)
@given(plain, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_come_out_as_they_went_in(values, protocol) -> None:
    assert read_pickle(pickle.dumps(values, protocol)) == values


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_snapshot_comes_out_as_pickle_itself_reads_it(protocol: int) -> None:
    data = allocator.fragmentation().pickle(protocol)
    assert read_pickle(data) == pickle.loads(data)


def test_many_values_are_remembered_and_recalled() -> None:
    words = [f"word {number}" for number in range(70_000)]
    values = words + words
    for protocol in (2, 4):
        assert read_pickle(pickle.dumps(values, protocol)) == values


class Acts:
    """Unpickling it runs a command."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_would_run_a_command_is_refused_and_runs_nothing(protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    data = pickle.dumps({"segments": [Acts(mark)]}, protocol)
    with pytest.raises(InputError, match=r"it names (posix|nt)\.system; a memory snapshot holds plain values only"):
        read_pickle(data)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (collections.OrderedDict(a=1), "collections.OrderedDict"),
        (dt.date(2026, 1, 1), "datetime.date"),
        (Path("x"), "pathlib"),
        (eval, "eval"),
        (complex(1, 2), "builtins.complex"),
    ],
)
@pytest.mark.parametrize("protocol", [3, 4])
def test_any_class_is_refused_by_name(value, named: str, protocol: int) -> None:
    with pytest.raises(InputError, match=rf"it names .*{named}"):
        read_pickle(pickle.dumps([value], protocol))


@pytest.mark.parametrize("code", b"Rbo\x81\x92PQ\x82\x83\x84\x97\x98ci\x93\x8f\x90\x91\x96")
def test_every_opcode_that_could_act_or_fill_an_object_is_refused(code: int) -> None:
    data = b"\x80\x04\x8c\x01a\x8c\x01b" + bytes([code]) + b"os\nsystem\n" + b"."
    with pytest.raises(InputError, match=r"refused|not understood"):
        read_pickle(data)


@pytest.mark.parametrize("protocol", [0, 1])
def test_old_protocols_are_told_from_damage(protocol: int) -> None:
    with pytest.raises(InputError, match="protocol 2 or later"):
        read_pickle(pickle.dumps({"segments": []}, protocol))


def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(InputError, match="protocol 9"):
        read_pickle(b"\x80\x09}.")


def test_a_cut_pickle_is_refused_wherever_it_is_cut() -> None:
    data = pickle.dumps({"segments": [{"address": 2**40, "size": 5, "name": "x" * 300}], "more": (1, 2.5, None)}, 4)
    for end in range(len(data)):
        with pytest.raises(InputError):
            read_pickle(data[:end])


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_refused_or_read_and_nothing_else(tail: bytes) -> None:
    with contextlib.suppress(InputError):
        read_pickle(b"\x80\x04" + tail)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_a_damaged_snapshot_is_refused_or_read_and_nothing_else(data) -> None:
    whole = bytearray(SMALL)
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(2, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        read_pickle(bytes(whole))


SMALL = allocator.awaiting_free().pickle()

U4, U8 = struct.Struct("<I"), struct.Struct("<Q")
BOMBS = {
    "a memo index of four billion": b"\x80\x04N" + b"r" + U4.pack(2**32 - 1) + b".",
    "a text of an exabyte": b"\x80\x04\x8d" + U8.pack(2**60) + b"x.",
    "bytes of an exabyte": b"\x80\x04\x8e" + U8.pack(2**60) + b"x.",
    "a bytearray of an exabyte": b"\x80\x05\x96" + U8.pack(2**60) + b"x.",
    "a number of a gigabyte": b"\x80\x04\x8b" + U4.pack(2**30) + b"x.",
    "a negative length": b"\x80\x04\x8b" + U4.pack(2**32 - 1) + b"x.",
    "a frame of an exabyte": b"\x80\x04\x95" + U8.pack(2**60) + b"N.",
    "a million open lists": b"\x80\x04" + b"(" * 1_000_000 + b".",
    "a tuple nested a hundred thousand times, as a key": b"\x80\x04})" + b"\x85" * 100_000 + b"Ns.",
    "a closing without an opening": b"\x80\x04t.",
    "a value from under the mark": b"\x80\x04N(0.",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=list(BOMBS))
def test_a_bomb_takes_no_memory_and_no_time(bomb: bytes) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(InputError):
            read_pickle(bomb)
        assert tracemalloc.get_traced_memory()[1] < 120_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a text of an exabyte", "bytes of an exabyte"])
def test_a_length_is_held_against_what_is_there(name: str) -> None:
    with pytest.raises(InputError, match=r"it announces 1,152,921,504,606,846,976 bytes and 2 are left"):
        read_pickle(BOMBS[name])


def test_lists_of_lists_that_stand_for_billions_are_only_as_large_as_the_file() -> None:
    """Each list holds the one before ten times: twenty levels stand for 10**20 values."""
    level = b"\x80\x04]\x94"
    for number in range(20):
        level += b"](" + b"".join(b"h" + bytes([number]) for _ in range(10)) + b"e\x94"
    values = read_pickle(b"\x80\x04](" + level[2:] + b"e.")
    assert len(values) == 21


def test_a_pickle_of_too_many_values_says_what_to_do() -> None:
    data = pickle.dumps(list(range(5000)), 4)
    with pytest.raises(InputError, match="max_entries"):
        read_pickle(data, max_values=4000)


def test_numbers_of_the_largest_size_are_read() -> None:
    largest = 2 ** (8 * MAX_NUMBER_BYTES - 1) - 1
    assert read_pickle(pickle.dumps([largest, -largest], 4)) == [largest, -largest]
    with pytest.raises(InputError, match="a number of"):
        read_pickle(pickle.dumps([largest * 2**9], 4))
