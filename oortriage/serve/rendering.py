"""A result as a report: redacted or not, in each format that the page offers."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec

from oortriage.replay.experiment import Experiment
from oortriage.report._interface import Style, open_report, render_all
from oortriage.report.compose import compose
from oortriage.report.material import Material
from oortriage.report.redaction import Redactor
from oortriage.triage.diagnosis import Diagnosis

SCHEMA_VERSION = 1
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
    return Material(diagnosis, experiment=experiment, commands=commands, environment=_machine())


def summary(material: Material) -> tuple[str, str]:
    """Return title and verdict, redacted."""
    document = compose(Redactor().struct(material))
    return document.title, document.verdict


def render(material: Material, kind: Format, *, redact: bool, rule_folders: Sequence[Path] = ()) -> str:
    """Write a report."""
    redactor = Redactor()
    if redact:
        material = redactor.struct(material)
    replaced = redactor.replaced
    if kind == "sarif":
        style = Style()
        style.rule_folders = rule_folders
        return render_all(open_report("sarif", style), [material.diagnosis])
    document = compose(material, replaced)
    if kind == "html":
        from oortriage.report.page import html_page

        return html_page(document)
    if kind == "markdown":
        from oortriage.report.issue import issue_markdown

        return issue_markdown(document).text
    whole = {
        "schema_version": SCHEMA_VERSION,
        "title": document.title,
        "verdict": document.verdict,
        **msgspec.to_builtins(material),
        "redacted": [{"kind": one.kind, "placeholder": one.placeholder, "count": one.count} for one in replaced],
    }
    return json.dumps(whole, indent=2) + "\n"


def _machine() -> dict[str, str]:
    """Say what wrote the report: system, Python, and the compiler where there is one. No names of machines."""
    found = {"system": f"{platform.system()} {platform.machine()}", "Python": sys.version.split()[0]}
    for package in ("triton", "torch", "vllm"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
