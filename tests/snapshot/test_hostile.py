"""Snapshots that no allocator wrote: refused with one line, or reported in every format; never a traceback."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import InputError
from oortriage.report.snapshot import snapshot_report, snapshot_schema
from oortriage.snapshot.analyse import analyse
from oortriage.snapshot.parse import parse
from tests.snapshot import allocator

NUMBERS = st.integers(-1, 3) | st.sampled_from([511, 2**20, 2**30, 2**40, 2**63 - 1, 2**63, 2**64, 2**100])
VALUES = st.one_of(
    NUMBERS,
    st.none(),
    st.booleans(),
    st.floats(),
    st.text(max_size=5),
    st.lists(NUMBERS, max_size=3),
    st.dictionaries(st.text(max_size=3), NUMBERS, max_size=2),
    st.sampled_from(
        ["inactive", "active_allocated", "alloc", "oom", "free_completed", "segment_unmap", "large", "small"]
    ),
)
WHOLE = [one().snapshot() for one in (allocator.fragmentation, allocator.stranded_pool, allocator.awaiting_free)]


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every field of a snapshot as its holder and its key."""
    found: list[tuple[Any, Any]] = []
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found.append((value, key))
        found += places(value[key])
    return found


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_snapshot_with_fields_changed_is_refused_or_reported(data: st.DataObject) -> None:
    values = copy.deepcopy(data.draw(st.sampled_from(WHOLE)))
    fields = places(values)
    for _ in range(data.draw(st.integers(1, 6))):
        holder, key = fields[data.draw(st.integers(0, len(fields) - 1))]
        if data.draw(st.booleans()) or not isinstance(holder, dict):
            holder[key] = data.draw(VALUES)
        else:
            holder.pop(key, None)
    try:
        report = analyse(parse(values, "made up"), "x")
    except InputError:
        return
    for form in ("text", "markdown", "svg"):
        assert snapshot_report(report, form)
    found = json.loads(snapshot_report(report, "json"), parse_constant=pytest.fail)  # NaN is no JSON
    jsonschema.validate(found, snapshot_schema())


@settings(deadline=None, max_examples=60)
@given(st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_values_of_any_kind_are_no_snapshot(values: Any) -> None:
    if values == []:
        return
    with pytest.raises(InputError):
        parse(values, "made up")


@pytest.mark.parametrize("empty", [{"segments": []}, [], {"segments": [], "device_traces": [[], []]}])
def test_nothing_allocated_is_reported(empty: Any) -> None:
    report = analyse(parse(empty, "made up"), "x")
    assert report.exit_code == 0
    assert "no segments and no events" in snapshot_report(report, "text")
    assert snapshot_report(report, "svg").startswith("<svg")
