"""Hard wraps undone, and equally long lines that are no wraps left alone."""

from __future__ import annotations

import random
from itertools import pairwise
from textwrap import dedent

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oortriage.intake.line import Line, Piece
from oortriage.intake.log import read_lines
from oortriage.intake.unwrap import unwrap, wrap_width

PROCESS = "(EngineCore_DP0 pid=4711) ERROR 06-25 12:01:00 [core.py:718] "
BARE = "(EngineCore_DP0 pid=4711) "
RANK = "[rank3]: "

#: Lines of a crash as they were printed: several longer than a terminal, each in its own way.
PRINTED = [
    "Traceback (most recent call last):",
    '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 3841, in profile_run',
    "    hidden_states, last_hidden_states = self._dummy_run(self.max_num_tokens, is_profile=True)",
    '  File "/opt/venv/lib/python3.12/site-packages/triton/compiler/compiler.py", line 483, in _init_handles',
    '    raise_(OutOfResources(self.metadata.shared, max_shared, "shared memory"))',
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98304, Hardware limit: 65536. Reducing block sizes or `num_stages` may help.",
    "",
    "The process ends here; see the lines above for what the hardware gives and what was asked for it.",
    "Resolved architecture: Gemma3ForConditionalGeneration, dtype torch.float32, head size 512, block size 16, attention backend TRITON_ATTN, device Tesla T4",
    "Loading safetensors checkpoint shards from /data/models/a-very-long-name-of-a-model/snapshots/0e9e39f249a16976918f6564b8830bc894c89659/ took 12.3 s",
]


def lines(text: list[str]) -> list[Line]:
    return list(read_lines(Piece(number, 0, raw) for number, raw in enumerate(text, start=1)))


def plain(text: list[str]) -> list[Line]:
    """Lines that have no prefix, so that nothing but the unwrapping is at work."""
    return [Line(raw, [Piece(n, 0, raw)], [(0, 0)]) for n, raw in enumerate(text, start=1)]


def wrapped(text: list[str], width: int) -> list[str]:
    """What a terminal of this width makes of printed lines."""
    rows = []
    for line in text:
        rows += [line[at : at + width] for at in range(0, len(line), width)] or [""]
    return rows


def wrapped_with(prefix: str, text: list[str], width: int) -> list[str]:
    """What a collector that repeats its prefix in front of every row makes of them."""
    rows = wrapped(text, width - len(prefix))
    return [prefix + row for row in rows]


def joined(text: list[str]) -> list[Line]:
    found = lines(text)
    return unwrap(found, wrap_width(found))


# --- the width


@pytest.mark.parametrize("width", [60, 80, 100, 119, 120])
def test_the_width_of_a_terminal_is_found(width: int) -> None:
    rows = wrapped(PRINTED, width)
    assert sum(len(row) == width for row in rows) >= 3
    assert wrap_width(plain(rows)) == width


@pytest.mark.parametrize("times", [2, 3, 8])
def test_a_crash_printed_several_times_has_the_width_it_has_once(times: int) -> None:
    assert wrap_width(plain(wrapped(PRINTED * times, 80))) == 80


def test_text_that_was_not_wrapped_has_no_width() -> None:
    assert wrap_width(plain(PRINTED * 5)) == 0


def test_nothing_has_no_width() -> None:
    assert wrap_width([]) == 0
    assert wrap_width(plain(["x" * 80])) == 0


def test_two_long_lines_are_a_coincidence() -> None:
    assert wrap_width(plain(["a" * 80, "tail", "b" * 80, "tail"])) == 0


@pytest.mark.parametrize("width", [20, 400])
def test_lines_that_no_terminal_has_are_no_wraps(width: int) -> None:
    assert wrap_width(plain([letter * width for letter in "abcdefgh"])) == 0


def test_the_same_line_again_and_again_is_no_wrap() -> None:
    row = "DEBUG the server is alive and has nothing to do at this moment, as ever " + "x" * 8
    assert len(row) == 80
    assert wrap_width(plain([row, "ok"] * 50)) == 0


SMI = dedent("""
    +-----------------------------------------------------------------------------------------+
    | NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
    |-----------------------------------------+------------------------+----------------------+
    | GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
    | Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
    |                                         |                        |               MIG M. |
    |=========================================+========================+======================|
    |   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
    | N/A   30C    P0             62W /  400W |       1MiB /  81920MiB |      0%      Default |
    |                                         |                        |             Disabled |
    +-----------------------------------------+------------------------+----------------------+
    |   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0A:00.0 Off |                    0 |
    | N/A   29C    P0             61W /  400W |   79000MiB /  81920MiB |     97%      Default |
    |                                         |                        |             Disabled |
    +-----------------------------------------+------------------------+----------------------+
""").strip("\n")


def test_an_nvidia_smi_table_is_left_alone() -> None:
    text = SMI.split("\n")
    found = lines(text)
    assert wrap_width(found) == 0
    assert len(unwrap(found, wrap_width(found))) == len(text)


@pytest.mark.parametrize("mark", list("=-*#~_"))
def test_rulers_are_left_alone(mark: str) -> None:
    text = [f"section {n}" if n % 2 else mark * (78 + n % 3) for n in range(40)]
    text += [mark * 80] * 20 + [mark * 40 + f" {n:02} " + mark * 36 for n in range(10)]
    found = plain(text)
    assert wrap_width(found) == 0


def test_a_rich_box_is_left_alone() -> None:
    rows = [f"│ {'row ' + str(number):<76} │" for number in range(30)]
    assert {len(row) for row in rows} == {80}
    found = lines(rows)
    assert wrap_width(found) == 0


def test_a_table_of_kernels_with_many_lengths_is_left_alone() -> None:
    rows = [f"triton_mm_{n} {'#' * (n % 7)}0.{n:04} ms {100 - n}.0% ACC_TYPE='tl.float32'" for n in range(40)]
    assert wrap_width(plain(rows)) == 0


def test_a_few_wrapped_rows_in_a_log_of_longer_lines_are_no_wrap() -> None:
    rows = wrapped(PRINTED, 80) + ["y" * (90 + n % 50) for n in range(100)]
    assert wrap_width(plain(rows)) == 0


# --- joining


@pytest.mark.parametrize("width", [80, 119])
def test_wrapped_lines_come_back(width: int) -> None:
    found = joined(wrapped(PRINTED, width))
    assert [line.body for line in found] == PRINTED


@pytest.mark.parametrize("prefix", [BARE, RANK])
@pytest.mark.parametrize("width", [80, 119])
def test_wrapped_lines_come_back_when_each_row_repeats_the_prefix(prefix: str, width: int) -> None:
    found = joined(wrapped_with(prefix, PRINTED, width))
    assert [line.body for line in found] == PRINTED


@pytest.mark.parametrize("width", [80, 119])
def test_wrapped_lines_come_back_when_only_the_first_row_has_the_prefix(width: int) -> None:
    rows = wrapped([PROCESS + line for line in PRINTED], width)
    assert [line.body for line in joined(rows)] == PRINTED


def words(seed: int, length: int) -> str:
    """Text of different words, exactly so long."""
    rng = random.Random(seed)
    text = ""
    while len(text) < length:
        text += rng.choice(["kernel", "tile", "block", "stage", "head", "size", "plan"])
        text += f"_{rng.randrange(1000)} "
    return text[: length - 1] + "."


def rows_cut_in(number: str, offset: int, width: int) -> list[str]:
    """A message whose figure stands across the edge of the terminal, and rows that give the width."""
    head = "OutOfResources: out of resource: shared memory, Required: "
    filler = words(9, width - len(head) - offset)
    message = filler + head + number + ", Hardware limit: 65536."
    others = [words(seed, width + 20) for seed in range(4)]
    return wrapped([*others, message, "end"], width)


@pytest.mark.parametrize("width", [80, 119])
@pytest.mark.parametrize("offset", [1, 2, 3, 4])
def test_a_number_cut_in_two_is_whole_again(width: int, offset: int) -> None:
    rows = rows_cut_in("98304", offset, width)
    assert any(row.endswith("Required: " + "98304"[:offset]) for row in rows)
    text = "\n".join(line.body for line in joined(rows))
    assert "Required: 98304, Hardware limit: 65536." in text


@pytest.mark.parametrize("width", [80, 119])
@pytest.mark.parametrize("offset", [1, 3])
def test_a_number_cut_in_two_behind_a_repeated_prefix_is_whole_again(width: int, offset: int) -> None:
    rows = [RANK + row for row in rows_cut_in("98304", offset, width - len(RANK))]
    text = "\n".join(line.body for line in joined(rows))
    assert "Required: 98304, Hardware limit: 65536." in text


def test_a_word_cut_at_a_space_keeps_the_space() -> None:
    width = 80
    message = words(8, width - 7) + " out of the memory of the device and so on and on"
    assert message[width - 7 : width + 5] == " out of the "
    assert message[width] == " "  # so a shift of 0 and of 1 put the break beside a space
    for shift in range(12):
        moved = message[shift:]
        rows = wrapped([words(seed, 100) for seed in range(4)] + [moved], width)
        assert joined(rows)[-1].body == moved


def test_a_joined_line_knows_the_rows_it_came_from() -> None:
    rows = rows_cut_in("98304", 2, 80)
    line = next(one for one in joined(rows) if "Required: 98304" in one.body)
    first = next(n for n, row in enumerate(rows, 1) if row.endswith("98"))
    at = line.body.index("98304")
    assert [piece.number for piece in line.pieces[:2]] == [first, first + 1]
    assert line.place(at) == (line.pieces[0], 79)
    assert line.place(at + 1) == (line.pieces[0], 80)
    assert line.place(at + 2) == (line.pieces[1], 1)


def test_a_joined_line_behind_a_prefix_knows_the_columns() -> None:
    rows = [RANK + row for row in rows_cut_in("98304", 2, 80 - len(RANK))]
    line = next(one for one in joined(rows) if "Required: 98304" in one.body)
    piece, column = line.place(line.body.index("98304") + 2)
    assert piece.raw[column - 1 :].startswith("304, Hardware")
    assert column == len(RANK) + 1


def test_a_new_record_is_never_joined_to_the_line_above() -> None:
    rows = [words(seed, 80) for seed in range(4)] + ["ERROR 06-25 12:01:00 [core.py:1] failed"]
    found = lines(rows)
    out = unwrap(found, 80)
    assert out[-1].body == "failed"


@pytest.mark.parametrize("row", ["Traceback (most recent call last):", '  File "a.py", line 1, in f'])
def test_a_traceback_is_never_joined_to_the_line_above(row: str) -> None:
    rows = ["a" * 80, row]
    assert [line.body for line in unwrap(plain(rows), 80)] == rows


def test_a_line_of_another_process_is_never_joined() -> None:
    rows = ["[rank0]: " + "a" * 71, "[rank1]: bbb", "(EngineCore pid=7) ccc"]
    assert [line.body for line in unwrap(lines(rows), 80)] == ["a" * 71, "bbb", "ccc"]


def test_a_row_that_repeats_the_whole_prefix_of_its_record_is_joined() -> None:
    text = "x" * (100 - len(PROCESS)) + "Required: 98304"
    rows = wrapped_with(PROCESS, [text], 100)
    assert len(rows) == 2
    assert [line.body for line in unwrap(lines(rows), 100)] == [text]


def test_without_a_width_nothing_changes() -> None:
    found = plain(["a" * 80, "b"])
    assert unwrap(found, 0) == found


def test_an_endless_run_of_full_rows_is_cut_into_bounded_lines() -> None:
    found = unwrap(plain([f"{n:05}" + "x" * 75 for n in range(1000)]), 80)
    assert 80 * 10 <= max(len(line.body) for line in found) <= 80 * 40
    assert sum(len(line.body) for line in found) == 80_000


def test_rows_of_one_format_are_not_joined_though_each_is_of_full_width() -> None:
    rows = [f"step {n:4} loss 0.{n:04}" + " " * 50 + f"lr {n:04}" for n in range(50)]
    assert wrap_width(plain(rows)) == 0
    assert [line.body for line in unwrap(plain(rows), len(rows[0]))] == rows


# --- invariants


@given(
    st.lists(st.text("abc d", max_size=200), max_size=30),
    st.integers(40, 130),
)
def test_no_character_is_lost_and_no_line_twice(text: list[str], width: int) -> None:
    rows = wrapped(text, width)
    found = unwrap(plain(rows), width)
    assert "".join(line.body for line in found) == "".join(rows)
    numbers = [piece.number for line in found for piece in line.pieces]
    assert numbers == list(range(1, len(rows) + 1))


LETTERS = st.text("abcdefghijklmnop rstuvwxyz", min_size=1, max_size=300)


def no_rows_alike(rows: list[str]) -> bool:
    """Rows that begin with the same five letters are taken for rows of a table."""
    return all(a[:5] != b[:5] for a, b in pairwise(rows))


@given(st.lists(LETTERS, max_size=15), st.integers(40, 130))
def test_unwrapping_undoes_wrapping(text: list[str], width: int) -> None:
    text = [line for line in text if len(line) % width]  # a full last row cannot be told
    rows = wrapped(text, width)
    assume(no_rows_alike(rows))
    found = unwrap(plain(rows), width)
    assert [line.body for line in found] == text


@given(st.lists(LETTERS, min_size=1, max_size=8))
def test_every_character_of_a_joined_line_is_where_it_says(text: list[str]) -> None:
    rows = wrapped(text, 45)
    for line in unwrap(plain(rows), 45):
        for offset, character in enumerate(line.body):
            piece, column = line.place(offset)
            assert rows[piece.number - 1][column - 1] == character


def test_equally_long_lines_that_alternate_with_others_are_no_wrap() -> None:
    """A trainer that skips batches prints one message of one length between its steps."""
    rows = []
    for number in range(10, 50):
        rows.append(f"WARNING skipping batch: CUDA out of memory. Tried to allocate {number}.00 MiB.")
        rows.append(f"step {number} loss 0.5")
    found = plain(rows)
    assert wrap_width(found) == 0
