"""``oortriage group``: thousands of logs in, one entry a failure out."""

from __future__ import annotations

import contextlib
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Color, Sink, complain, style_for
from oortriage.cli.progress import progress
from oortriage.errors import UsageError


class GroupFormat(str, Enum):
    """Formats of group."""

    text = "text"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"
    markdown = "markdown"


class GroupBy(str, Enum):
    """What the logs of one group share."""

    fingerprint = "fingerprint"
    cause = "cause"
    code = "code"
    resource = "resource"


def group(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Logs, folders of logs, or - for standard input.")
    ],
    by: Annotated[GroupBy, typer.Option("--by", help="What the logs of one group share.")] = GroupBy.fingerprint,
    format: Annotated[GroupFormat, typer.Option("--format", "-f", help="Output format.")] = GroupFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    reports: Annotated[
        Path | None,
        typer.Option("--reports", help="Write a redacted report of each failure's example into this folder."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes that read logs; 0 is one a core.")] = 0,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds that one log may take.")] = 120.0,
    color: Annotated[Color, typer.Option("--color", hidden=True)] = Color.auto,
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", help="A folder of your own rules; may be repeated.")
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="End with 0 also when a failure was found.")] = False,
) -> None:
    """Group logs by failure: how many, first and last seen, which cards and versions, one example with its proof.

    A log that cannot be read, or that its reader does not survive, is listed and ends nothing. Ctrl-C prints what
    is there so far. Ends with 0 when no resource failure was found, 1 when one was found, 3 when something failed
    and no log holds the cause, 2 when an input could not be read, 130 when interrupted.

    Examples: `oortriage group logs/`, `oortriage group logs/ --format csv -o groups.csv`,
    `oortriage group logs/ --reports reports/`.
    """
    from oortriage.config import find_config
    from oortriage.grouping.run import group as read
    from oortriage.report.groups import groups_report

    config = find_config()
    folders = [*config.rule_folders, *(rules or [])]
    if reports is not None:
        _make(reports)  # before hours of reading
    with progress("logs") as shown:
        found = read(logs, by=by.value, jobs=jobs, rules=folders, seconds=timeout, progress=shown)
    if not found.logs and not found.failed and not found.interrupted:
        raise UsageError(f"{', '.join(logs)}: no logs in there")
    for one in found.failed:
        complain(f"{one.file}: {one.reason}")
    with contextlib.closing(Sink(output)) as sink:
        sink.put(groups_report(found, format.value, style_for(color, output)))
    if found.interrupted:
        complain("interrupted: not all logs were read")
        raise typer.Exit(130)
    if reports is not None:
        from oortriage.cli.group_reports import write_reports

        write_reports(found, reports, folders)
    code = found.exit_code
    raise typer.Exit(0 if code in (1, 3) and (exit_zero or config.exit_zero) else code)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"{folder}: cannot be made: {problem.strerror or problem}") from problem
