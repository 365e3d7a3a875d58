"""The Grafana dashboard and the Prometheus alert rules that go with the exporter, as files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from oortriage.errors import UsageError

DASHBOARD, ALERTS, SCRAPE = "oortriage-dashboard.json", "oortriage-alerts.yml", "prometheus.yml"
NAMES = (DASHBOARD, ALERTS, SCRAPE)


def shipped(name: str) -> str:
    """Return the text of one of the files."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def write_shipped(folder: Path) -> list[Path]:
    """Write the files into a folder, which is made where it is missing; return their paths.

    Raises:
        UsageError: they cannot be written.
    """
    found = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            path = folder / name
            path.write_text(shipped(name), encoding="utf-8")
            found.append(path)
    except OSError as problem:
        raise UsageError(f"{folder}: cannot be written: {problem.strerror or problem}") from problem
    return found
