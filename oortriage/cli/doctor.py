"""``oortriage doctor``: this machine's own facts, and what is wrong with them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Color, Sink, style_for


class DoctorFormat(str, Enum):
    """Formats of doctor."""

    text = "text"
    json = "json"


def doctor(
    format: Annotated[DoctorFormat, typer.Option("--format", "-f", help="Output format.")] = DoctorFormat.text,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    issue: Annotated[
        bool, typer.Option("--issue", help="A redacted block for an issue report: named fields only, as Markdown.")
    ] = False,
    python: Annotated[
        Path | None,
        typer.Option("--python", help="The interpreter of another environment: /path/to/venv/bin/python."),
    ] = None,
    dmesg: Annotated[Path | None, typer.Option("--dmesg", help="Read Xids from this saved kernel log.")] = None,
    topo: Annotated[
        Path | None, typer.Option("--topo", help="Read peer access from this output of `nvidia-smi topo -p2p r`.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Check this machine: driver, CUDA and wheels, cards, memory, limits, settings, package versions.

    Changes nothing and imports neither torch nor vllm; useful without a GPU, too. Every finding comes with its remedy.

    Ends with 0 when nothing is wrong, 1 when there is an error or a warning, 2 on a usage error.

    Examples: `oortriage doctor`, `oortriage doctor --issue`, `oortriage doctor --python /opt/vllm/bin/python`.
    """
    from oortriage.doctor.examine import examine
    from oortriage.doctor.machine import Machine
    from oortriage.errors import InputError, UsageError
    from oortriage.report.doctor import doctor_report
    from oortriage.report.doctor_issue import issue_block

    if issue and (as_json or format is DoctorFormat.json):
        raise UsageError("--issue is Markdown; leave out --json")
    for name, path in (("--python", python), ("--dmesg", dmesg), ("--topo", topo)):
        if path is not None and (path.is_dir() or not path.exists()):  # a pipe, as of <(dmesg), is well
            raise InputError(f"{name} {path}: {'is a folder' if path.is_dir() else 'is not there'}")
    found = examine(Machine(python, dmesg, topo))
    sink = Sink(output)
    if issue:
        sink.put(issue_block(found))
    else:
        width = style_for(Color.never, output).width
        sink.put(doctor_report(found, "json" if as_json else format.value, width))
    raise typer.Exit(found.exit_code)
