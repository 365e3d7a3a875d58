"""New cases and blessed labels: ``case.toml`` written from a verdict."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from oortriage.api import Analyzer
from oortriage.errors import UsageError
from oortriage.scoring.case import load_case
from oortriage.triage.diagnosis import Diagnosis


def new_case(log: Path, folder: Path, *, source: str, origin: str) -> Path:
    """Make a case from a log; the label is the present verdict and needs a person's eye.

    Raises:
        UsageError: the folder exists, or the origin is neither ``run`` nor ``public``.
        InputError: the log cannot be read.
    """
    if origin not in ("run", "public"):
        raise UsageError(f"--origin {origin}: run or public")
    if folder.exists():
        raise UsageError(f"{folder}: exists already")
    diagnosis = Analyzer().file(log, name=log.name)
    folder.mkdir(parents=True)
    shutil.copyfile(log, folder / log.name)
    path = folder / "case.toml"
    path.write_text(_head(diagnosis.title, log.name, origin, source, "") + _label(diagnosis), encoding="utf-8")
    return path


def bless_case(path: Path) -> Path:
    """Write the present verdict into a case as its label; title, source and note stay."""
    case = load_case(path)
    diagnosis = Analyzer().file(case.path, name=case.log)
    head = _head(case.title, case.log, case.origin, case.source, case.note)
    path.write_text(head + _label(diagnosis), encoding="utf-8")
    return path


def _head(title: str, log: str, origin: str, source: str, note: str) -> str:
    pairs = {"title": title, "log": log, "origin": origin, "source": source, "note": note}
    return "".join(f"{key} = {_value(value)}\n" for key, value in pairs.items()) + "\n"


def _label(diagnosis: Diagnosis) -> str:
    root = diagnosis.evidence[0] if diagnosis.evidence else None
    lines = [
        "[expect]",
        f"resource = {_value(diagnosis.resource)}",
        f"causes = [{_value(diagnosis.cause)}]" if diagnosis.cause else "causes = []",
        f"status = {_value(diagnosis.status)}",
        f"phases = [{_value(diagnosis.phase)}]" if diagnosis.phase != "unknown" else "phases = []",
        f"root_line = {root.line if root else 0}",
    ]
    if diagnosis.numbers:
        pairs = ", ".join(f"{name} = {value}" for name, value in diagnosis.numbers.items())
        lines.append(f"numbers = {{ {pairs} }}")
    return "\n".join(lines) + "\n"


def _value(text: str) -> str:
    # A JSON string is a valid TOML basic string once DEL is written out.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
