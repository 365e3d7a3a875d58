"""Write the outputs of the action and the job's summary, from what ``analyze`` has written.

Usage: outputs.py FOLDER REPORT EXIT_CODE, with the runner's own variables and SUMMARY in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

#: Bytes of a step's summary that the runner takes (1 MiB), less room for the last line.
MOST_SUMMARY = 1_000_000

_CUT = "\n\nThe summary is cut here; the report holds all of it.\n"


def worst_of(diagnoses: list[dict[str, Any]]) -> dict[str, Any]:
    """Choose the diagnosis that the outputs tell about: found before undetermined before survived, else the first."""

    def rank(one: dict[str, Any]) -> int:
        if one["resource"] not in ("none", "undetermined"):
            return 0
        return 1 if one["resource"] == "undetermined" else 2 if one["status"] == "recovered" else 3

    return min(diagnoses, key=rank)


def cut_lines(text: str, limit: int) -> str:
    """Cut a Markdown text to a size in bytes, at a line's end; an open fence is closed."""
    data = text.encode()
    if len(data) <= limit:
        return text
    kept = data[:limit].decode("utf-8", "ignore").rpartition("\n")[0]
    fence = ""
    for line in kept.split("\n"):
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if fence and line.strip() == fence:
            fence = ""
        elif not fence and len(ticks) >= 3:
            fence = ticks
    return kept + (f"\n{fence}" if fence else "") + _CUT


def main(folder: Path, report: str, code: str) -> None:
    """Write outputs and summary."""
    lines = (folder / "as-read.jsonl").read_text(encoding="utf-8").splitlines()
    worst = worst_of([json.loads(line) for line in lines])
    chosen = folder / "worst.txt"
    chosen.write_text(worst["file"], encoding="utf-8", errors="surrogateescape")
    outputs = {name: worst[name] for name in ("resource", "code", "status", "fingerprint")} | {
        "exit-code": code,
        "report": report,
        "diagnoses": str(folder / "diagnoses.jsonl"),
        "sarif": str(folder / "oortriage.sarif"),
        "worst": str(chosen),
    }
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in outputs.items())
    if os.environ.get("SUMMARY") == "true":
        summary = (folder / "summary.md").read_text(encoding="utf-8")
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
            file.write(cut_lines(summary, MOST_SUMMARY))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
