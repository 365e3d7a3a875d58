"""The map of a block's shared memory, on a terminal and as SVG."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from oortriage.ledger.allocation import Buffer, Ledger
from oortriage.report._interface import Style
from oortriage.report.draw.memory_map import memory_map_svg, memory_map_text
from tests.report.draw._made import FULL, ISSUE, LIMIT, counts, ledgers, parsed, texts


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_issue_on_a_terminal(width: int, snapshot: SnapshotAssertion):
    assert memory_map_text(ISSUE, LIMIT, Style(width=width)) == snapshot


def test_the_issue_in_colour(snapshot: SnapshotAssertion):
    assert memory_map_text(ISSUE, LIMIT, Style(width=80, color=True)) == snapshot


def test_the_issue_as_svg(snapshot: SnapshotAssertion):
    assert memory_map_svg(ISSUE, LIMIT) == snapshot


@pytest.mark.parametrize("limit", [101_376, 166_912])
def test_a_kernel_with_everything(limit: int, snapshot: SnapshotAssertion):
    assert memory_map_text(FULL, limit, Style(width=100)) == snapshot
    assert memory_map_svg(FULL, limit) == snapshot


@given(ledgers, counts, st.integers(60, 120), st.booleans())
@settings(deadline=None, max_examples=50)
def test_any_ledger_on_a_terminal(ledger, limit, width, color):
    page = memory_map_text(ledger, limit, Style(width=width, color=color))
    bare = re.sub(r"\x1b\[[\d;]*m", "", page) if color else page
    lines = bare.removesuffix("\n").split("\n")
    assert all(line.isprintable() and cell_len(line) <= width for line in lines)
    for buffer in ledger.buffers:
        assert re.search(rf"(?<![\d,]){buffer.bytes:,}(?![\d,])", bare)
    assert f"{ledger.total_bytes:,} B" in bare
    assert ("at most" in bare) == any(not buffer.exact for buffer in ledger.buffers)
    assert (re.search(r"^residual ", bare, re.MULTILINE) is not None) == (ledger.residual != 0)


@given(ledgers, counts)
@settings(deadline=None, max_examples=50)
def test_any_ledger_as_svg(ledger, limit):
    root = parsed(memory_map_svg(ledger, limit))
    tips = [tip for tip in texts(root, "title")[1:] if not tip.startswith("residual: ")]
    assert len(tips) >= sum(buffer.bytes > 0 for buffer in ledger.buffers) - sum(
        "residual" in b.name + b.op for b in ledger.buffers
    )
    for buffer in ledger.buffers:
        if buffer.bytes:
            assert (
                any(f"{buffer.bytes:,} B at offset {buffer.offset:,}" in tip for tip in tips)
                or "residual" in buffer.name
            )
    _, _, wide, tall = (float(side) for side in root.get("viewBox").split())
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= wide
        assert 0 <= float(rect.get("y")) <= float(rect.get("y")) + float(rect.get("height")) <= tall


@given(ledgers, counts)
@settings(deadline=None, max_examples=50)
def test_the_bill_adds_up(ledger, limit):
    bill = memory_map_text(ledger, limit, Style(width=120)).split("\n\n")[-1]
    figures = {
        name: int(count.replace(",", "")) for name, count in re.findall(r"^(\w+) +(-?[\d,]+) B", bill, re.MULTILINE)
    }
    verdict = {"over": 1, "free": -1}
    parts = sum(count for name, count in figures.items() if name not in {"total", "limit", *verdict})
    assert parts == figures["total"] == ledger.total_bytes
    assert figures["limit"] + sum(sign * figures.get(name, 0) for name, sign in verdict.items()) == figures["total"]


def test_what_is_over_the_limit_is_marked_without_colour():
    page = memory_map_text(ISSUE, LIMIT, Style(width=120)).splitlines()
    assert page[1] == "81,920 B needed, limit 65,536 B: 16,384 B over the limit"
    lane = page[5]
    assert lane.index("║") < lane.index("Q 16,384 B") < lane.index("░")
    assert "░" not in lane[: lane.index("║")]
    assert "░" not in memory_map_text(ISSUE, 90_000, Style(width=120))
    assert "8,080 B free" in memory_map_text(ISSUE, 90_000, Style(width=120))


def test_boxes_stand_under_the_one_they_share_with():
    lines = memory_map_text(ISSUE, LIMIT, Style(width=80)).splitlines()
    assert lines[5].startswith("│K 32,768 B")
    assert lines[8].startswith("│  │ P 2,048 B")


def test_many_lanes_stay_short():
    made = tuple(Buffer(f"b{at}", "scratch", "", (8,), "f32", 1_000 + at, at) for at in range(9))
    page = memory_map_text(Ledger(made, 1_100), 2_000, Style(width=80))
    assert len(page.split("\n\n")[1].splitlines()) == 1 + 9 + 1 + 1  # ruler, lanes, limit, note
    assert "┌" not in page


def test_too_many_to_draw_are_named():
    made = tuple(Buffer(f"b{at}", "barrier", "", (1,), "i64", 8, 8 * at) for at in range(200))
    page = memory_map_text(Ledger(made, 1_600), 2_000, Style(width=60))
    assert "too small to draw: b" in page
    assert page.count(" barrier ") >= 200


def test_nothing_to_draw():
    empty = Ledger((), 0)
    assert memory_map_text(empty, 0, Style()).splitlines()[1:4] == [
        "0 B needed, limit 0 B: fits with 0 B free",
        "",
        "no buffers",
    ]
    assert "0 B needed, limit 0 B" in texts(parsed(memory_map_svg(empty, 0)))[1]


def test_a_total_that_buffers_pass_is_told():
    page = memory_map_text(msgspec.structs.replace(ISSUE, total_bytes=80_000), LIMIT, Style(width=100))
    assert "residual  -1,920 B  buffers reach past the compiler's total" in page


def test_the_picture_says_what_it_shows():
    root = parsed(memory_map_svg(ISSUE, LIMIT))
    said = texts(root, "desc")[0]
    assert said.startswith(
        "81,920 B needed, limit 65,536 B: 16,384 B over the limit. K: 32,768 B at offset 0; operand, 256x32xf32; "
    )
    assert said.count("shares its bytes with") == 2
    assert {"limit 65,536 B", "16,384 B over", "operand 81,920 B + 2,048 B reused"} <= set(texts(root))


def test_the_broken_frame_over_the_limit_hides_nothing():
    shapes = list(parsed(memory_map_svg(ISSUE, LIMIT)).iter("{http://www.w3.org/2000/svg}rect"))
    frames = [one for one in shapes if one.get("stroke-width") == "3"]
    assert [(one.get("fill"), one.get("stroke-dasharray")) for one in frames] == [("none", "7 4")]
    assert all(one.get("fill") or one.get("class") for one in shapes)  # or it would be black


def test_no_control_code_passes():
    bad = msgspec.structs.replace(ISSUE.buffers[0], name="\x1b[2J\u202eK]]><script>", file="a\x07.py", text="\x9b31m")
    page = memory_map_text(Ledger((bad,), 81_920), LIMIT, Style(width=120))
    assert not set(page) & set("\x1b\u202e\x07\x9b")
    assert "\\x1b[2J\\u202eK]]" in page
    assert "[2JK]]><script>" in "".join(texts(parsed(memory_map_svg(Ledger((bad,), 81_920), LIMIT)), "title"))
