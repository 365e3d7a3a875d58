"""JSON log lines: the message taken out, with its level, time and source, at its own column."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.line import Piece
from oortriage.intake.log import build_log, read_lines
from oortriage.intake.structured import Unpacked, unpack

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.parametrize("key", ["message", "msg", "log", "textPayload", "MESSAGE", "event", "line", "body", "text"])
def test_the_message_is_found_under_the_usual_names(key: str) -> None:
    found = unpack(json.dumps({"n": 1, key: OOM}))
    assert found is not None
    assert found.message == OOM


def test_level_time_and_source_are_kept() -> None:
    text = json.dumps({"ts": "2026-03-01T10:00:00Z", "level": "error", "pod": "vllm-0", "msg": OOM})
    assert unpack(text) == Unpacked(OOM, text.index(OOM), "ERROR", "2026-03-01T10:00:00Z", "vllm-0")


def test_a_number_may_stand_for_level_and_time() -> None:
    found = unpack(json.dumps({"ts": 1767225600, "PRIORITY": 3, "MESSAGE": OOM}))
    assert found is not None
    assert (found.time, found.level) == ("1767225600", "3")


def test_a_traceback_beside_the_message_is_read_after_it() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n' + OOM
    found = unpack(json.dumps({"message": "request failed", "exception": trace}))
    assert found is not None
    assert found.message == "request failed\n" + trace


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "{not json}",
        "[1, 2]",
        '"text"',
        "text {}",
        '{"a": 1}',
        '{"msg": 5}',
        '{"msg": ""}',
        '{"msg": "cut off',
        "{'msg': 'python'}",
        '{"a":' * 5000 + "1" + "}" * 5000,
    ],
)
def test_other_lines_are_no_json_log(text: str) -> None:
    assert unpack(text) is None


def test_a_json_line_becomes_the_lines_of_its_message() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n' + OOM
    rows = [json.dumps({"container": "vllm-0", "log": trace}), json.dumps({"log": "after"})]
    pieces = [Piece(number, 0, row) for number, row in enumerate(rows, start=1)]
    log = build_log("x", pieces, complete=True, notes=[])
    raised = [(one.type, one.frames[0].source) for one in log.streams[0].raised]
    assert raised == [("torch.OutOfMemoryError", "g()")]
    assert [(line.number, line.body) for line in log.lines] == [
        (1, "Traceback (most recent call last):"),
        (1, '  File "a.py", line 1, in f'),
        (1, "    g()"),
        (1, OOM),
        (2, "after"),
    ]
    assert log.streams[0].name == "vllm-0"


def test_a_prefix_inside_the_message_is_peeled() -> None:
    row = json.dumps({"log": f"(EngineCore pid=7) ERROR 06-25 12:01:00 [core.py:1] {OOM}\n"})
    line = next(iter(read_lines([Piece(1, 0, row)])))
    assert (line.body, line.stream, line.prefix.level) == (OOM, "EngineCore pid=7", "ERROR")


@pytest.mark.parametrize("key", ["msg", "message"])
def test_the_column_of_a_message_is_where_it_begins(key: str) -> None:
    """The key may occur as a value too, or as the end of another key."""
    row = json.dumps({"kind": key, f"x{key}": "no", key: OOM})
    line = next(iter(read_lines([Piece(1, 0, row)])))
    _, column = line.place(0)
    assert row[column - 1 :].startswith(OOM)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["msg", "message", "level", "ts", "exception", "error", "pod", "é"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_no_json_raises_and_every_place_lies_in_the_line(value: object, ascii_only: bool) -> None:
    row = json.dumps(value, ensure_ascii=ascii_only).replace("\n", " ")
    found = unpack(row)
    if found is not None:
        assert 0 <= found.offset <= len(row)
    for line in read_lines([Piece(1, 0, row)]):
        for offset in range(len(line.body) + 1):
            assert 1 <= line.place(offset)[1] <= len(row) + 1
