"""A memory snapshot's report: every format says the same, and nothing in it acts."""

from __future__ import annotations

import json

import jsonschema
import pytest

from oortriage.report.snapshot import snapshot_report, snapshot_schema
from oortriage.snapshot.analyse import Report, analyse
from oortriage.snapshot.parse import parse
from tests.snapshot import allocator


def report_of(one: allocator.Allocator) -> Report:
    return analyse(parse(one.snapshot(), "made up"), "oom.pickle")


FRAGMENTED = report_of(allocator.fragmentation())


def test_the_schema_is_one_and_a_report_fits_it() -> None:
    jsonschema.Draft202012Validator.check_schema(snapshot_schema())
    jsonschema.validate(json.loads(snapshot_report(FRAGMENTED, "json")), snapshot_schema())


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_readable_formats_show_the_steps_the_maps_and_the_changes(form: str) -> None:
    flat = " ".join(snapshot_report(FRAGMENTED, form).replace("\\", "").split())
    assert "2.00 GiB free + 16.00 GiB idle in 16 blocks, the largest of 1.00 GiB = 18.00 GiB >= 4.00 GiB" in flat
    assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in flat  # to be copied: no break in it
    assert "█" in flat
    assert "was called from" in flat


def test_the_text_fits_a_terminal_of_80_columns() -> None:
    assert max(map(len, snapshot_report(FRAGMENTED, "text").splitlines())) <= 80


def test_the_map_of_a_pool_adds_up_to_what_is_in_use() -> None:
    (pool,) = FRAGMENTED.devices[0].written.pools
    assert len(pool.map) <= 120
    used = sum(pool.map) / 100 * pool.map_cell_bytes
    assert used == pytest.approx(pool.allocated_bytes, rel=0.02)


def test_two_devices_are_told_apart() -> None:
    first, second = allocator.capacity().snapshot(), allocator.Allocator(allocator.GIB, device=1)
    second.malloc(allocator.MIB)
    values = second.snapshot()
    values["segments"] += first["segments"]
    values["device_traces"][0] = first["device_traces"][0]
    report = analyse(parse(values, "made up"), "oom.pickle")
    assert [one.verdict.cause if one.verdict else "" for one in report.devices] == ["capacity", ""]
    text = snapshot_report(report, "text")
    assert "DEVICE 0: THE VERDICT" in text
    assert "DEVICE 1: THE VERDICT" in text


@pytest.mark.parametrize("form", ["text", "markdown", "svg"])
def test_names_from_the_file_do_not_act(form: str) -> None:
    one = allocator.Allocator(allocator.GIB)
    one.malloc(600 * allocator.MIB, frames=[allocator.frame("\x1b[2Jx\n<b>@you|`.py", 1, "\u202ef<script>")])
    allocator.fails(one, 600 * allocator.MIB)
    text = snapshot_report(report_of(one), form)
    assert "\x1b" not in text
    assert "\u202e" not in text
    if form != "text":
        assert "<b>" not in text
        assert "<script>" not in text
        assert "@you" not in text or form == "svg"  # a mention acts in Markdown alone
