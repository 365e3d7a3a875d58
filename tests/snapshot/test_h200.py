"""Snapshots that PyTorch wrote on an H200, against what it printed for the same failures."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from oortriage.api import Analyzer
from oortriage.evidence.values import GIB, format_bytes
from oortriage.snapshot.analyse import Device, State, analyse
from oortriage.snapshot.moment import rewind
from oortriage.snapshot.source import read_snapshot
from tests.conftest import ROOT

FOLDER = ROOT / "tests" / "snapshot" / "h200"
MESSAGES: dict[str, str] = json.loads((FOLDER / "messages.json").read_text())["messages"]
#: The case, the snapshot's cause, and the cause of the printed message.
CASES = [
    ("capacity", "capacity", "capacity"),
    ("fragmentation", "fragmentation", "fragmentation"),
    ("graph-pool", "stranded_pool", "private_pool"),
    ("mem-pool", "stranded_pool", "private_pool"),
    ("limit", "limit", "per_process_limit"),
]


def device(name: str) -> Device:
    path = FOLDER / f"{name}.pickle.gz"
    (found,) = analyse(read_snapshot(path), str(path)).devices
    return found


@pytest.mark.parametrize(("name", "cause", "printed"), CASES)
def test_the_snapshot_and_the_message_of_a_failure_have_the_same_cause(
    name: str, cause: str, printed: str, analyzer: Analyzer
) -> None:
    found = device(name)
    assert found.verdict is not None
    assert found.verdict.cause == cause
    diagnosis = analyzer.text(f"torch.OutOfMemoryError: {MESSAGES[name]}\n")
    assert (diagnosis.resource, diagnosis.cause) == ("device_memory", printed)
    assert diagnosis.decision[-1].holds


@pytest.mark.parametrize("name", [one[0] for one in CASES])
def test_every_figure_of_the_message_is_in_the_snapshot(name: str) -> None:
    """Tried, free, allocated (idle memory of private pools counted in), that idle memory, and unallocated."""
    found = device(name)
    verdict, state = found.verdict, found.written
    assert verdict is not None
    assert verdict.device_free_bytes is not None
    pools = sum(pool.idle_bytes for pool in state.pools if pool.name == "private")
    message = MESSAGES[name]

    def printed(pattern: str) -> str:
        hit = re.search(pattern, message)
        return hit.group(1) if hit else "0 B"

    size = r"([\d.]+ (?:GiB|MiB|bytes))"
    assert printed(f"Tried to allocate {size}") == format_bytes(verdict.rounded_bytes)
    assert printed(f"of which {size} is free") == format_bytes(verdict.device_free_bytes)
    allocated = printed(f"allocated memory {size}").replace("bytes", "B")
    assert allocated == format_bytes(state.allocated_bytes + pools)
    assert printed(f"with {size} allocated in private") == format_bytes(pools)
    idle = printed(f"and {size} is reserved by PyTorch but unallocated").replace("bytes", "B")
    assert idle == format_bytes(state.idle_bytes - pools)


def test_a_snapshot_of_the_caught_failure_gives_the_state_that_the_observer_saw() -> None:
    """One was written in the allocator's own observer, the other when the exception and its tensors were gone."""
    seen, later = device("capacity"), device("capacity-caught")
    assert later.at_request is not None
    assert (later.written.allocated_bytes, later.at_request.allocated_bytes) == (128 * GIB, 131 * GIB)
    assert later.verdict == seen.verdict

    def shape(state: State) -> State:
        return msgspec.structs.replace(state, owners=[])

    assert shape(later.at_request) == shape(seen.written)
    assert [(one.where, one.bytes) for one in later.at_request.owners] == [
        (one.where, one.bytes) for one in seen.written.owners
    ]


@pytest.mark.parametrize("name", sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.gz")))
def test_all_events_taken_back_leave_nothing(name: str) -> None:
    """Also where the segments are expandable: 10 ranges mapped, 32 unmapped."""
    snapshot = read_snapshot(FOLDER / f"{name}.pickle.gz")
    then = rewind(0, snapshot.of_device(0), snapshot.traces[0], -1)
    assert (then.segments, then.odd) == ((), 0)


def test_the_remedy_for_fragmentation_served_the_same_program() -> None:
    assert MESSAGES["fragmentation-remedied"] == "served"
    broken, mended = device("fragmentation"), device("expandable")
    assert any("expandable_segments:True" in cure.change for cure in broken.remedies)
    assert mended.verdict is None
    assert set(mended.written.kinds) == {"expandable"}
    assert mended.trace is not None
    assert mended.trace.peak.live_bytes > 138 * GIB


def test_the_line_that_asked_is_named_with_its_caller() -> None:
    request = device("capacity").request
    assert request is not None
    assert (request.where, request.function) == ("/srv/example/app/serve.py:9", "piece")
    assert request.called_from == "/srv/example/app/serve.py:29 (step)"
    (owner,) = device("capacity").written.owners
    assert [one.rpartition("(")[2] for one in owner.called_from] == ["load_weights)", "make_cache)", "step)"]
