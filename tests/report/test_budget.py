"""A memory budget as text, JSON and Markdown: the same figures in each, at any width."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from oortriage.budget.figure import Figure
from oortriage.budget.model import read_model
from oortriage.budget.plan import Budget, Settings, budget, prepare
from oortriage.budget.startup import Start, available_at_start
from oortriage.report._interface import Style
from oortriage.report.budget import budget_report, budget_schema
from tests.budget.configs import GEMMA_3_4B

GIB = 1 << 30


@pytest.fixture
def gemma() -> Budget:
    settings = Settings(version="0.17.1", dtype="float32", tp=2, max_model_len=32768, max_num_batched_tokens=2048)
    size = Figure(3 * GIB, "bytes", "estimated", "a guess", 0.5 * GIB, 4 * GIB)
    return budget(prepare(read_model(GEMMA_3_4B), settings), size, name="gemma-3-4b")


def test_text(gemma: Budget, snapshot: SnapshotAssertion) -> None:
    assert budget_report(gemma, "text", Style(width=100)) == snapshot


def test_markdown(gemma: Budget, snapshot: SnapshotAssertion) -> None:
    assert budget_report(gemma, "markdown", Style()) == snapshot


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_keep_to_the_width_where_the_table_does(gemma: Budget, width: int) -> None:
    lines = budget_report(gemma, "text", Style(width=width)).splitlines()
    table = max(len(line) for line in lines if line.startswith("KV tokens"))
    assert max(map(len, lines)) <= max(width, table)


def test_text_says_no_more_than_json(gemma: Budget) -> None:
    found = json.loads(budget_report(gemma, "json", Style()))
    text = " ".join(budget_report(gemma, "text", Style(width=120)).split())
    assert found["sentence"] in text
    for note in [*found["notes"], *found["traps"]]:
        assert note in text
    for name in ("num_blocks", "kv_tokens"):
        assert f"{found[name]['value']:,.0f}" in text
        assert f"{found[name]['low']:,.0f} to {found[name]['high']:,.0f}" in text


def test_every_field_is_in_the_schema(gemma: Budget) -> None:
    schema = budget_schema()
    fields = schema["$defs"]["Budget"]["properties"]
    assert set(json.loads(budget_report(gemma, "json", Style()))) == set(fields)


def test_the_bill_of_a_card_fits_the_schema_and_shows_every_term() -> None:
    planned = prepare(read_model(GEMMA_3_4B), Settings(version="0.17.1", tp=2, max_model_len=8192))
    total = Figure(22 * GIB, "bytes", "given", "--gpu-memory")
    memory = available_at_start(planned, Start(total=total))
    result = budget(planned, memory.available, name="it", memory=memory)
    jsonschema.validate(json.loads(budget_report(result, "json", Style())), budget_schema())
    text = budget_report(result, "text", Style())
    for title in ("card", "weights", "profile peak", "outside torch", "CUDA graphs", "KV memory", "concurrency"):
        assert f"\n{title}" in text
    assert "beside the budget, not in it" in text


def test_names_cannot_act_on_a_terminal(gemma: Budget) -> None:
    hostile = msgspec.structs.replace(gemma, architecture="\x1b[31mRed|`x`@you", notes=("\x07",))
    text, page = (budget_report(hostile, name, Style()) for name in ("text", "markdown"))
    assert "\\x1b[31mRed" in text
    assert not {"\x1b", "\x07"} & set(text + page)
    assert "@you" not in page
