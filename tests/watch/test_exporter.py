"""The exporter's text, and the files that are written against it: every name they use is one it gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from oortriage.errors import UsageError
from oortriage.watch.exporter import Exporter
from oortriage.watch.rules import RULES
from oortriage.watch.sample import DeviceMemory, Sample
from oortriage.watch.shipped import ALERTS, DASHBOARD, NAMES, SCRAPE, shipped, write_shipped
from tests.watch.exporting import everything, exporting, scrape
from tests.watch.made import GIB, MIB

NAME = re.compile(r"\boortriage_\w+")


@pytest.fixture(scope="module")
def text() -> str:
    with exporting(everything()) as exporter:
        return scrape(exporter)


def values(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_was_read_is_given_in_base_units(text: str) -> None:
    found = values(text)
    process = (("gpu", "0"), ("pid", "8"), ("process", "p8"))
    assert found["oortriage_device_memory_size_bytes", (("device", "Test"), ("gpu", "0"))] == 80 * GIB
    assert found["oortriage_process_device_memory_bytes", process] > 10 * GIB
    slope = found["oortriage_process_device_memory_growth_bytes_per_second", process]
    assert slope * 60 == pytest.approx(41 * MIB, rel=0.01)
    assert found["oortriage_engine_kv_cache_usage_ratio", ()] == 0.99
    assert found["oortriage_cgroup_oom_kills_total", (("cgroup", "/pod"),)] == 1
    assert found["oortriage_watch_last_sample_timestamp_seconds", ()] > 1.7e9


def test_what_fires_is_given_by_code_and_by_subject(text: str) -> None:
    found = values(text)
    counts = {labels[0][1]: value for (name, labels), value in found.items() if name == "oortriage_alerts_firing"}
    assert set(counts) == {rule.CODE for rule in RULES}
    assert {code for code, count in counts.items() if count} == {"WD101", "WH301", "WH302", "WH304", "WK201", "WK202"}
    subject = (("code", "WD101"), ("gpu", "0"), ("pid", "8"), ("subject", "gpu 0 pid 8"))
    assert found["oortriage_alert_firing", subject] == 1


def test_no_metric_of_this_python_is_mixed_in(text: str) -> None:
    assert {name.partition("_")[0] for name, _ in values(text)} == {"oortriage"}


def test_before_the_first_sample_there_is_only_the_release() -> None:
    with exporting([]) as exporter:
        assert {name for name, _ in values(scrape(exporter))} == {"oortriage_watch_info"}


def test_a_process_that_is_gone_is_gone_here_too() -> None:
    given = everything()
    with exporting([*given, *_without_processes(given)]) as exporter:
        assert "oortriage_process_device_memory_bytes{" not in scrape(exporter)


def _without_processes(given):
    for sample in given:
        device = msgspec.structs.replace(sample.devices[0], processes=())
        yield msgspec.structs.replace(sample, time_s=sample.time_s + 3600, devices=(device,))


def test_it_listens_on_the_address_given_and_says_why_it_cannot() -> None:
    with exporting([]) as exporter, pytest.raises(UsageError, match="in use"):
        Exporter("127.0.0.1", exporter.port)
    with pytest.raises(UsageError, match="--prometheus"):
        Exporter("203.0.113.7", 0)


def test_labels_of_any_text_are_still_a_metric() -> None:
    name = 'a"b\\c\nd\x1b[31m{}'
    odd = Sample(1.0, (DeviceMemory("0", "", name, used_bytes=5),))
    with exporting([odd]) as exporter:
        found = values(scrape(exporter))
    assert found["oortriage_device_memory_used_bytes", (("device", name), ("gpu", "0"))] == 5


@pytest.fixture(scope="module")
def given_names(text: str) -> set[str]:
    return {name for name, _ in values(text)}


def test_every_metric_of_the_alert_rules_is_given(given_names: set[str]) -> None:
    rules = [rule for group in yaml.safe_load(shipped(ALERTS))["groups"] for rule in group["rules"]]
    used = {name for rule in rules for name in NAME.findall(rule["expr"])}
    assert len(used) >= 8
    assert used <= given_names
    for rule in rules:
        assert rule["annotations"].keys() == {"summary", "description"}


def test_every_metric_of_the_dashboard_is_given(given_names: set[str]) -> None:
    dashboard = json.loads(shipped(DASHBOARD))
    used = set(NAME.findall(shipped(DASHBOARD)))
    assert len(used) >= 15
    assert used <= given_names
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    for panel in dashboard["panels"]:
        assert panel["targets"]
        assert panel["description"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(shipped(DASHBOARD))["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


def test_no_rule_fires_on_a_level_of_device_memory() -> None:
    """A share of the card above which to alarm would always be exceeded by a serving engine."""
    for group in yaml.safe_load(shipped(ALERTS))["groups"]:
        for rule in group["rules"]:
            assert "device_memory_used_bytes /" not in rule["expr"]
            assert "DCGM" not in rule["expr"]


def test_the_files_are_written_whole(tmp_path: Path) -> None:
    paths = write_shipped(tmp_path / "new")
    assert sorted(path.name for path in paths) == sorted(NAMES) == sorted([ALERTS, DASHBOARD, SCRAPE])
    assert all(path.read_text(encoding="utf-8") == shipped(path.name) for path in paths)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_shipped(tmp_path / "file")
