"""The real promtool on the rules and on the exporter's text, and a real Prometheus that scrapes it and judges it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oortriage.watch.shipped import ALERTS, SCRAPE, shipped, write_shipped
from tests.watch.exporting import everything, exporting, scrape
from tests.watch.made import GIB

pytestmark = pytest.mark.prometheus

PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
CASES = Path(__file__).parent / "alert_cases.yml"


def promtool(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    if PROMTOOL is None:
        pytest.skip("no promtool")
    command = [PROMTOOL, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


def test_the_rules_are_valid(tmp_path: Path) -> None:
    write_shipped(tmp_path)
    done = promtool("check", "rules", "--lint-fatal", tmp_path / ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 rules found" in done.stdout


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    write_shipped(tmp_path)
    done = promtool("check", "config", tmp_path / SCRAPE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_fire_on_a_leak_and_are_silent_on_a_flat_pool(tmp_path: Path) -> None:
    write_shipped(tmp_path)
    shutil.copyfile(CASES, tmp_path / "cases.yml")
    done = promtool("test", "rules", "cases.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_cases_can_fail(tmp_path: Path) -> None:
    """The same cases against rules whose leak never ends in a finding."""
    (tmp_path / ALERTS).write_text(shipped(ALERTS).replace("64 * 1024 * 1024", "64 * 1024 * 1024 * 1024"))
    shutil.copyfile(CASES, tmp_path / "cases.yml")
    done = promtool("test", "rules", "cases.yml", cwd=tmp_path)
    assert done.returncode == 1
    assert "GpuProcessMemoryLeak" in done.stdout + done.stderr


def test_the_exporters_text_passes_every_check() -> None:
    """A name without its unit, a counter without ``_total`` or a missing help text would be told here."""
    with exporting(everything()) as exporter:
        text = scrape(exporter)
    done = promtool("check", "metrics", stdin=text)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def ask(port: int, path: str, **query: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    address = f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(query)}"
    with opener.open(address, timeout=5) as answer:
        return json.load(answer)["data"]


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[int, Any]]:
    """A Prometheus of its own, with the shipped configuration at a faster pace, and the exporter it scrapes."""
    if PROMETHEUS is None:
        pytest.skip("no prometheus")
    write_shipped(tmp_path)
    with exporting(everything()) as exporter:
        config = shipped(SCRAPE).replace("127.0.0.1:9400", f"127.0.0.1:{exporter.port}").replace("15s", "1s")
        (tmp_path / SCRAPE).write_text(config)
        port = free_port()
        command = [
            PROMETHEUS, f"--config.file={tmp_path / SCRAPE}", f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
        ]  # fmt: skip
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield port, exporter
        finally:
            process.terminate()
            process.wait(timeout=20)


def test_a_real_prometheus_scrapes_it_and_its_rule_fires(prometheus: tuple[int, Any]) -> None:
    port, _ = prometheus
    until = time.monotonic() + 40
    found: Any = {}
    alerts: list[Any] = []
    while time.monotonic() < until and not (found.get("result") and alerts):
        time.sleep(0.25)
        try:
            found = ask(port, "/api/v1/query", query='oortriage_process_device_memory_bytes{pid="8"}')
            alerts = [one for one in ask(port, "/api/v1/alerts")["alerts"] if one["labels"].get("code") == "WD101"]
        except (OSError, ValueError):
            continue  # it is still starting
    (sample,) = found["result"]
    assert sample["metric"]["process"] == "p8"
    assert float(sample["value"][1]) > 10 * GIB
    assert alerts[0]["labels"]["alertname"] == "OortriageAlertFiring"
    (target,) = ask(port, "/api/v1/targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
