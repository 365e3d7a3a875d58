"""A result as a report: redacted or not, in each format that the page offers."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from oortriage.replay.experiment import Experiment
from oortriage.report._interface import Style
from oortriage.report.compose import compose
from oortriage.report.environment import environment
from oortriage.report.material import Material
from oortriage.report.redaction import Redactor
from oortriage.report.rendering import rendered
from oortriage.triage.diagnosis import Diagnosis

Format = Literal["html", "markdown", "json", "sarif"]
#: What a browser is told, and how a download is called.
MEDIA: dict[str, tuple[str, str]] = {
    "html": ("text/html; charset=utf-8", "oortriage-report.html"),
    "markdown": ("text/markdown; charset=utf-8", "oortriage-report.md"),
    "json": ("application/json", "oortriage-report.json"),
    "sarif": ("application/sarif+json", "oortriage-report.sarif"),
}


def material_of(name: str, diagnosis: Diagnosis, experiment: Experiment | None) -> Material:
    """Put together what the report shows."""
    quoted = shlex.quote(name)
    commands = [f"oortriage analyze {quoted}"] + ([f"oortriage experiment {quoted}"] if experiment else [])
    return Material(diagnosis, experiment=experiment, commands=commands, environment=environment())


def summary(material: Material) -> tuple[str, str]:
    """Return title and verdict, redacted."""
    document = compose(Redactor().struct(material))
    return document.title, document.verdict


def render(material: Material, kind: Format, *, redact: bool, rule_folders: Sequence[Path] = ()) -> str:
    """Write a report."""
    redactor = Redactor()
    if redact:
        material = redactor.struct(material)
    style = Style()
    style.rule_folders = rule_folders
    text, _ = rendered(kind, compose(material, redactor.replaced), material, redactor.replaced, style)
    return text
