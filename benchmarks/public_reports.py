"""Compile the kernels of public OutOfResources reports and hold each figure against the printed one.

``python benchmarks/public_reports.py`` reads ``docs/evidence/public-reports.toml`` and writes
``public-reports.md`` and ``public-reports.json`` beside it. It needs Triton, torch (a CPU build) and the
package index, and no GPU.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import sys
from pathlib import Path
from typing import Any

import msgspec

from oortriage.errors import OortriageError
from oortriage.replay.options import Options
from oortriage.replay.reproduce import Reproduction, reproduce
from oortriage.replay.selection import select

FOLDER = Path(__file__).parent.parent / "docs" / "evidence"


def main() -> int:
    """Compile, write both files, and end with 1 where a report that should match does not."""
    reports = msgspec.toml.decode((FOLDER / "public-reports.toml").read_bytes())["report"]
    rows = [_row(report) for report in reports]
    (FOLDER / "public-reports.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    (FOLDER / "public-reports.md").write_text(_page(rows), encoding="utf-8")
    wrong = [row for row in rows if row["computed"] is not None and not row["exact"] and not row["reason"]]
    for row in wrong:
        print(f"{row['url']}: printed {row['printed']:,}, computed {row['computed']:,}", file=sys.stderr)
    print(f"{sum(row['exact'] for row in rows)} of {len(rows)} figures to the byte")
    return 1 if wrong else 0


def _row(report: dict[str, Any]) -> dict[str, Any]:
    result: Reproduction | None = None
    reason = report.get("reason", "")
    if "kernel" in report:
        options = Options(
            kernel=report["kernel"],
            gpu=report["gpu"],
            versions=report.get("release", {}),
            settings=report.get("set", {}),
            overrides=report.get("const", {}),
        )
        try:
            result = reproduce(select(options))
        except OortriageError as problem:
            reason = reason or str(problem)
        else:
            if result.failure:
                reason = reason or result.failure.message
    computed = result.required_bytes if result else None
    return {
        "url": report["url"],
        "part": report.get("part", ""),
        "gpu": report["gpu"],
        "target": result.target if result else "",
        "printed": report["printed"],
        "limit": report["limit"],
        "computed": computed,
        "exact": computed == report["printed"],
        "kernel": report.get("kernel", ""),
        "function": result.function if result else "",
        "source": result.source if result else "",
        "triton": result.triton if result else "",
        "settings": result.settings if result else {},
        "constants": {k: v for k, v in result.constants.items() if type(v) is int} if result else {},
        "known": report.get("known", ""),
        "reason": reason,
    }


def _page(rows: list[dict[str, Any]]) -> str:
    exact = sum(row["exact"] for row in rows)
    urls = len({row["url"] for row in rows if row["exact"]})
    tritons = ", ".join(sorted({row["triton"] for row in rows if row["triton"]}))
    lines = [
        "# Public reports, computed again",
        "",
        f"{exact} of {len(rows)} printed figures come out to the byte, from {urls} public reports, on a machine",
        f"without a GPU (Triton {tritons}, Python {platform.python_version()}, {dt.datetime.now(dt.timezone.utc).date()}).",
        "Each is the library's own wrapper, called with the report's shapes for the report's card, and compiled up",
        "to the allocation of shared memory; nothing is tuned to a figure. Written by",
        "`python benchmarks/public_reports.py` from `public-reports.toml`, which says where each parameter comes",
        "from; `public-reports.json` is the same as data.",
        "",
        "| report | card | printed | computed | | kernel and source | settings |",
        "|---|---|---:|---:|---|---|---|",
    ]
    for row in sorted(rows, key=lambda one: (not one["exact"], one["computed"] is None)):
        mark = "exact" if row["exact"] else "not met" if row["computed"] is not None else "not compiled"
        computed = f"{row['computed']:,}" if row["computed"] is not None else "-"
        name = row["url"].removeprefix("https://").removeprefix("github.com/")
        part = f" ({row['part']})" if row["part"] else ""
        source = f"`{row['function'] or row['kernel']}`, {row['source']}" if row["kernel"] else ""
        says = row["known"] if row["exact"] else "; ".join(one for one in (row["reason"], row["known"]) if one)
        lines.append(
            f"| [{name}]({row['url']}){part} | {row['gpu']} {row['target']} | {row['printed']:,} | {computed} | {mark} "
            f"| {source} | {says} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
