"""A log as a whole: streams, continuation lines, order, joined ranks, and reprs."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.intake.line import Kind, Line
from oortriage.intake.log import Log, Stream, build_log
from oortriage.intake.split import split
from oortriage.intake.window import Anchors, Gate, Stretch

GATE = Gate(Anchors(("out of resource: ",), ()))


def read(text: str, *, complete: bool = True) -> Log:
    data = text.encode()
    pieces = split(Stretch(0, 1, 0, data), GATE)
    return build_log("crash.log", pieces, complete=complete, notes=[])


def shown(text: str) -> Log:
    return read(dedent(text).strip("\n"))


def stream(log: Log, name: str) -> Stream:
    return next(one for one in log.streams if one.name == name)


def bodies(of: Log | Stream) -> list[str]:
    return [line.body for line in of.lines]


# --- the whole


def test_an_empty_log_has_no_streams_with_text() -> None:
    log = read("")
    assert [line.body for line in log.lines if line.body] == []
    assert all(not one.text for one in log.streams)


def test_a_log_keeps_its_name_notes_and_completeness() -> None:
    log = build_log("a.log", [], complete=False, notes=["odd"])
    assert (log.name, log.complete, log.notes) == ("a.log", False, ["odd"])


def test_lines_are_in_reading_order_with_their_raw_numbers() -> None:
    log = shown("""
        [rank0]: a
        [rank1]: b

        [rank0]: c
    """)
    assert [(line.order, line.number, line.body) for line in log.lines] == [
        (0, 1, "a"),
        (1, 2, "b"),
        (2, 3, ""),
        (3, 4, "c"),
    ]


# --- streams


def test_each_process_is_a_stream() -> None:
    log = shown("""
        (APIServer pid=1) start
        (EngineCore pid=2) one
        (EngineCore pid=3) other
        (APIServer pid=1) end
    """)
    assert {one.name: bodies(one) for one in log.streams} == {
        "APIServer pid=1": ["start", "end"],
        "EngineCore pid=2": ["one"],
        "EngineCore pid=3": ["other"],
    }


@pytest.mark.parametrize(
    "form",
    [
        "[rank{}]: {}",
        "(VllmWorker rank={} pid=9) ERROR 03-13 09:00:43 [multiproc_executor.py:375] {}",
        "(VllmWorker TP{} pid=9) ERROR 08-25 12:24:17 [multiproc_executor.py:596] {}",
        "[2025-05-04 01:05:33 TP{}] {}",
        "[22:30:32 TP{}] {}",
        "worker-{}  | {}",
        "{}: {}",
        "(Worker pid=10{}) {}",
    ],
)
def test_interleaved_tracebacks_of_eight_ranks_are_read_apart(form: str) -> None:
    traceback = [
        "Traceback (most recent call last):",
        '  File "moe.py", line 88, in forward',
        "    kernel[grid](x)",
        "OutOfResources: out of resource: shared memory, Required: 98304, Hardware limit: 65536",
    ]
    text = "\n".join(form.format(rank, row) for row in traceback for rank in range(8))
    log = read(text)
    raised = [one for stream_ in log.streams for one in stream_.raised]
    assert [(one.type, one.frames[0].source) for one in raised] == [("OutOfResources", "kernel[grid](x)")] * 8


def test_a_streams_text_has_messages_and_exceptions_and_no_code() -> None:
    log = shown("""
        before
        Traceback (most recent call last):
          File "a.py", line 1, in f
            raise OutOfResources(1, 2, "shared memory")
        OutOfResources: out of resource: shared memory
    """)
    assert log.streams[0].text.split("\n") == [
        "before",
        "Traceback (most recent call last):",
        "OutOfResources: out of resource: shared memory",
    ]


def test_every_place_of_a_streams_text_leads_to_its_line() -> None:
    log = shown("""
        [rank1]: first line
        [rank1]: Traceback (most recent call last):
        [rank1]:   File "a.py", line 1, in f
        [rank1]:     g()
        [rank1]: ValueError: last line
    """)
    text = log.streams[0].text
    line, offset = log.streams[0].line_at(text.index("last line"))
    assert (line.number, line.body, offset) == (5, "ValueError: last line", 12)
    line, offset = log.streams[0].line_at(0)
    assert (line.number, offset) == (1, 0)


# --- bare continuation lines


def test_frames_below_a_prefixed_head_belong_to_its_process() -> None:
    log = shown("""
        (EngineCore pid=7) ERROR 06-25 12:01:00 [core.py:1] Traceback (most recent call last):
          File "a.py", line 1, in f
            g()
        RuntimeError: CUDA error: out of memory
        (APIServer pid=1) still here
    """)
    engine = stream(log, "EngineCore pid=7")
    assert bodies(engine)[-1] == "RuntimeError: CUDA error: out of memory"
    assert [one.type for one in engine.raised] == ["RuntimeError"]


def test_numbers_below_a_prefixed_message_belong_to_its_process() -> None:
    """A logger puts its prefix in front of the first line of a message only."""
    log = shown("""
        [2025-05-04 01:05:33 TP5] Prefill out of memory. Try to lower your batch size.
        Try to allocate 2048 tokens.
        Available tokens: 148 (available_size=148 + evictable_size=0)
        [2025-05-04 01:05:34 TP0] other
    """)
    assert bodies(stream(log, "rank=TP5")) == [
        "Prefill out of memory. Try to lower your batch size.",
        "Try to allocate 2048 tokens.",
        "Available tokens: 148 (available_size=148 + evictable_size=0)",
    ]


def test_a_bare_line_that_logs_on_its_own_stays_apart() -> None:
    log = shown("""
        (EngineCore pid=7) ERROR 06-25 12:01:00 [core.py:1] it failed:
        INFO 06-25 12:01:01 [launcher.py:9] another process
    """)
    assert bodies(stream(log, "")) == ["another process"]


def test_where_every_line_has_its_prefix_bare_lines_are_another_process() -> None:
    log = shown("""
        (EngineCore pid=7) Traceback (most recent call last):
        (EngineCore pid=7)   File "a.py", line 1, in f
        (EngineCore pid=7)     g()
        (EngineCore pid=7) RuntimeError: CUDA error: out of memory
        the shell speaks
    """)
    assert bodies(stream(log, "")) == ["the shell speaks"]


def test_the_first_lines_without_prefix_are_a_stream_without_name() -> None:
    log = shown("""
        $ vllm serve m
        (EngineCore pid=7) x
    """)
    assert bodies(stream(log, "")) == ["$ vllm serve m"]


# --- order


def stamped(numbers: list[int], step: str = "2026-03-01T10:00:{:02}Z {}") -> str:
    return "\n".join(step.format(number, f"line {number}") for number in numbers)


def test_a_log_printed_newest_first_is_read_from_its_end() -> None:
    log = read(stamped([9, 8, 7, 6, 5]))
    assert bodies(log) == ["line 5", "line 6", "line 7", "line 8", "line 9"]
    assert [line.number for line in log.lines] == [5, 4, 3, 2, 1]
    assert any("newest first" in note for note in log.notes)


def test_a_log_printed_in_order_is_not_turned() -> None:
    log = read(stamped([1, 2, 3, 4, 5]))
    assert [line.number for line in log.lines] == [1, 2, 3, 4, 5]
    assert log.notes == []


def test_a_clock_that_jumps_back_once_does_not_turn_a_log() -> None:
    log = read(stamped([*range(30, 50), *range(20, 40)]))
    assert log.lines[0].number == 1


def test_ranks_whose_clocks_differ_do_not_turn_a_log() -> None:
    log = read(stamped([1, 3, 2, 4, 3, 5, 4, 6, 5, 7]))
    assert log.lines[0].number == 1


def test_equal_times_do_not_turn_a_log() -> None:
    log = read(stamped([5] * 10))
    assert log.lines[0].number == 1


def test_notes_given_are_not_changed_in_place() -> None:
    notes: list[str] = []
    pieces = split(Stretch(0, 1, 0, stamped([9, 8, 7, 6, 5]).encode()), GATE)
    build_log("x", pieces, complete=True, notes=notes)
    assert notes == []


# --- joined ranks


def test_lines_of_ranks_pasted_as_one_line_are_cut_apart() -> None:
    raw = (
        "[rank3]: Traceback (most recent call last): "
        '[rank3]:   File "a.py", line 1, in f '
        "[rank3]:     g() "
        "[rank3]: RuntimeError: No valid triton configs."
    )
    log = read(f"before\n{raw}\nafter")
    ranks = stream(log, "rank=3")
    assert [one.type for one in ranks.raised] == ["RuntimeError"]
    assert {line.number for line in ranks.lines} == {2}
    assert [line.number for line in log.lines if line.body == "after"] == [3]
    last = ranks.lines[-1]
    at = last.body.index("No valid")
    piece, column = last.place(at)
    assert raw[column - 1 :].startswith("No valid")
    assert piece.number == 2


def test_a_rank_named_in_a_sentence_does_not_cut_it() -> None:
    log = read("see the lines of [rank3] above, then [rank4]")
    assert len([line for line in log.lines if line.body]) == 1


# --- reprs


ESCAPED = (
    r"Worker failed with error 'Traceback (most recent call last):\n"
    r"  File \"a.py\", line 1, in f\n    g()\n"
    r"RuntimeError: CUDA error: out of memory\n'"
)


@pytest.mark.parametrize("break_", [r"\n", r"\\n", r"\r\n"])
def test_a_repr_of_a_traceback_is_read_as_lines(break_: str) -> None:
    log = read("before\n" + ESCAPED.replace(r"\n", break_) + "\nafter")
    raised = [one for one in log.streams[0].raised if one.type]
    assert [(one.type, one.message.rstrip("'")) for one in raised] == [("RuntimeError", "CUDA error: out of memory")]
    assert raised[0].frames[0].source == "g()"
    assert {line.number for line in log.lines if "CUDA error" in line.body} == {2}
    assert log.lines[-1].number == 3


def test_an_escaped_break_inside_a_path_or_a_pattern_does_not_cut() -> None:
    text = r"opened C:\new\file.txt"
    assert bodies(read(text)) == [text]


def test_the_lines_of_a_repr_keep_the_process() -> None:
    log = read("(EngineCore pid=7) " + ESCAPED)
    assert {line.stream for line in log.lines} == {"EngineCore pid=7"}


def test_a_part_of_a_repr_knows_about_where_it_stands() -> None:
    """An escaped quote counts for two in the raw line, so the column may be off by as many."""
    log = read(ESCAPED)
    line = next(one for one in log.lines if "CUDA error" in one.body)
    _, column = line.place(line.body.index("CUDA"))
    assert abs(ESCAPED.index("CUDA error") + 1 - column) <= ESCAPED.count('\\"')


# --- wraps, markdown, viewers


def test_a_wrapped_message_is_one_line_with_the_number_of_its_first_row() -> None:
    message = (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304, "
        "Hardware limit: 65536. Reducing block sizes or `num_stages` may help."
    )
    printed = [
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 3841, in profile_run',
        '  File "/opt/venv/lib/python3.12/site-packages/triton/compiler/compiler.py", line 483, in _init_handles',
        message,
    ]
    rows = [line[at : at + 80] for line in printed for at in range(0, len(line), 80)]
    log = read("\n".join(rows))
    found = next(line for line in log.lines if line.body == message)
    assert found.number == rows.index(message[:80]) + 1
    assert found.kind is Kind.EXCEPTION
    assert [frame.line for frame in log.streams[0].raised[0].frames] == [3841, 483]


def test_an_issue_text_is_marked_and_its_words_are_prose() -> None:
    log = shown("""
        ## Bug

        It says out of resource, see below.

        ```
        RuntimeError: out of resource: shared memory
        ```
    """)
    assert log.markdown
    marked = {line.body: line.in_prose for line in log.lines}
    assert marked["It says out of resource, see below."] is True
    assert marked["RuntimeError: out of resource: shared memory"] is False


def test_a_log_that_is_no_issue_text_has_no_prose() -> None:
    log = shown("""
        it starts
        RuntimeError: x
    """)
    assert not log.markdown
    assert not any(line.in_prose for line in log.lines)


def test_a_viewers_line_numbers_are_taken_off() -> None:
    log = shown("""
        79 Traceback (most recent call last):
        80   File "/scratch/run/main.py", line 88, in <module>
        81     trainer.train()
        82   File "<string>", line 63, in _kernel
        83 triton.runtime.autotuner.OutOfResources: out of resource: shared memory
    """)
    raised = log.streams[0].raised
    assert [(one.type, len(one.frames)) for one in raised] == [("triton.runtime.autotuner.OutOfResources", 2)]
    assert log.lines[-1].number == 5
    assert log.lines[-1].place(0)[1] == 4


def test_numbers_that_do_not_count_up_belong_to_the_text() -> None:
    text = "10 files\n20 files\n30 files\n31 files\n32 files\n99 files"
    assert bodies(read(text)) == text.split("\n")


def test_help_text_is_marked_from_its_usage_line_to_the_next_prompt() -> None:
    log = shown("""
        usage: serve [-h] [--max-model-len N]
          --gpu-memory-utilization  lower it when you see CUDA out of memory
        $ serve m
        RuntimeError: x
    """)
    assert [line.in_help for line in log.lines] == [True, True, False, False]


# --- invariants


FRAGMENTS = st.sampled_from(
    [
        "[rank0]: ",
        "[rank1]: ",
        "(EngineCore pid=7) ERROR 06-25 12:01:00 [core.py:1] ",
        "2026-03-01T10:00:01Z ",
        "\x1b[31m",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "    g()",
        "RuntimeError: x",
        r"\n",
        "\n",
        "\n",
        "\r",
        "```",
        "x" * 79,
        "Größe",
        "{",
        '"msg": "text"}',
    ]
)


@given(st.lists(FRAGMENTS, max_size=40))
def test_every_line_stands_in_one_stream_and_in_the_input(parts: list[str]) -> None:
    text = "".join(parts)
    log = read(text)
    raw = text.split("\n")
    in_streams = [line for one in log.streams for line in one.lines]
    assert sorted(line.order for line in in_streams) == list(range(len(log.lines)))
    for line in log.lines:
        assert 1 <= line.number <= len(raw)
        for piece in line.pieces:
            assert raw[piece.number - 1][piece.column :].startswith(piece.raw)


@given(st.lists(FRAGMENTS, max_size=40))
def test_a_streams_text_leads_back_to_every_readable_line(parts: list[str]) -> None:
    log = read("".join(parts))
    for one in log.streams:
        at = 0
        readable: list[Line] = [line for line in one.lines if line.kind not in (Kind.CODE, Kind.FRAME)]
        for line in readable:
            assert one.line_at(at) == (line, 0)
            at += len(line.body) + 1
        assert len(one.text) == max(0, at - 1)


@given(st.lists(FRAGMENTS, max_size=40))
def test_no_letter_of_the_input_is_lost(parts: list[str]) -> None:
    text = "".join(part for part in parts if part not in ("{", '"msg": "text"}', "\x1b[31m"))
    log = read(text)
    kept = " ".join(piece.raw for line in log.lines for piece in line.pieces)
    assert set(re.findall(r"\w+", text)) <= set(re.findall(r"\w+", kept))
