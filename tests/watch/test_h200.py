"""A recording from a real card, replayed: the leak that was made there is named, and nothing else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from oortriage.watch import loop
from oortriage.watch.recording import Recording
from oortriage.watch.sample import Settings
from oortriage.watch.watcher import Watcher
from tests.conftest import ROOT
from tests.watch.made import fired

TRUTH = json.loads((ROOT / "docs/evidence/watch.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("h200") / "leak.jsonl"
    path.write_bytes(gzip.decompress((Path(__file__).parent / "h200" / "leak.jsonl.gz").read_bytes()))
    return Recording(path)


def replayed(recording: Recording, settings: Settings) -> Watcher:
    watcher = Watcher(settings)
    loop.replay(recording, watcher, [], loop.Stop())
    return watcher


def test_the_leak_is_named_with_its_rate(recording: Recording) -> None:
    watcher = replayed(recording, recording.header.settings)
    (one,) = fired(watcher)
    assert (one.code, one.pid) == ("WD101", TRUTH["leak_pid"])
    assert one.numbers["slope_bytes_per_s"] == pytest.approx(TRUTH["true_bytes_per_s"], rel=0.001)
    assert one.time_s >= TRUTH["leak_began_s"]
    assert one.time_s - TRUTH["leak_began_s"] < 1.2 * recording.header.settings.window_s


def test_the_pool_beside_it_is_flat_and_all_growth_is_explained(recording: Recording) -> None:
    watcher = replayed(recording, recording.header.settings)
    kinds = {one.key.pid: one.trend.kind for one in watcher.view.of("process")}
    assert kinds == {TRUTH["leak_pid"]: "steady", TRUTH["flat_pid"]: "flat"}
    assert [one.trend.kind for one in watcher.view.of("device")] == ["steady"]
    assert {one.trend.kind for one in watcher.view.of("host")} == {"flat"}


def test_asked_for_the_other_process_it_is_told_as_a_neighbour(recording: Recording) -> None:
    settings = Settings(0.25, 20.0, 64 << 20, 7200.0, (TRUTH["flat_pid"],))
    assert [(one.code, one.pid) for one in fired(replayed(recording, settings))] == [("WD103", TRUTH["leak_pid"])]


def test_what_was_measured_is_what_is_written_down() -> None:
    assert all(TRUTH["checks"].values())
    assert abs(TRUTH["fitted_bytes_per_s"] / TRUTH["true_bytes_per_s"] - 1) < 0.1
    page = (ROOT / "docs/evidence/watch.md").read_text(encoding="utf-8")
    for figure in (
        f"{TRUTH['true_bytes_per_s']:,.0f}",
        f"{TRUTH['fitted_bytes_per_s']:,.0f}",
        f"{TRUTH['reading']['cpu_ms']:.2f} ms",
    ):
        assert figure in page
