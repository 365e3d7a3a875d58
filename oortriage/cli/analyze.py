"""``oortriage analyze``: logs in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from oortriage.cli.output import Color, FormatName, complain, exit_code, style_for, write
from oortriage.errors import InputError, UsageError
from oortriage.triage.diagnosis import Diagnosis

T = TypeVar("T", Diagnosis, str)


def analyze(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Logs, folders of logs, or - for standard input. gzip, zstd and xz are read as they are.",
        ),
    ],
    format: Annotated[FormatName, typer.Option("--format", "-f", help="Output format.")] = FormatName.text,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file instead of standard output."),
    ] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
    rules: Annotated[
        list[Path] | None,
        typer.Option("--rules", help="A folder of your own rules; may be repeated."),
    ] = None,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Compile a failing kernel again (needs Triton, no GPU) and add its bill.")
    ] = False,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Take tokens, names and prompts out, as a report does."),
    ] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="End with 0 also when a failure was found.")] = False,
) -> None:
    """Say what ran out in a crash log, with the line that proves it.

    Ends with 0 when no resource failure was found, 1 when one was found, 3 when something failed and
    the log does not hold the cause, 2 when an input cannot be read.

    Examples: `oortriage analyze crash.log`, `oortriage analyze logs/ --format jsonl`,
    `docker logs vllm 2>&1 | oortriage analyze -`.
    """
    from oortriage.api import Analyzer, expand
    from oortriage.config import find_config
    from oortriage.replay.compiled_bill import with_compiled_bill

    config = find_config()
    analyzer = Analyzer([*config.rule_folders, *(rules or [])])
    paths = expand(logs)
    if not paths:
        raise UsageError(f"{', '.join(logs)}: no logs in there")
    failed: list[str] = []
    # One for all logs: what is the same in two of them stays the same.
    shown = _redacted() if redact else _as_it_is

    def diagnoses() -> Iterator[Diagnosis]:
        for path in paths:
            try:
                diagnosis = analyzer.file(path, name="<stdin>" if str(path) == "-" else str(path))
                yield shown(with_compiled_bill(diagnosis) if ledger or config.ledger else diagnosis)
            except InputError as problem:
                failed.append(shown(str(problem)))
                complain(shown(str(problem)))

    many = len(logs) > 1 or paths != logs  # a folder is replaced by its logs, be it only one
    style = style_for(color, output, many=many)
    style.rule_folders, style.failed = [*config.rule_folders, *(rules or [])], failed
    done = write(diagnoses(), format.value, style, output)
    code = exit_code(done, failed_inputs=len(failed), exit_zero=exit_zero or config.exit_zero)
    raise typer.Exit(code)


def _as_it_is(value: T) -> T:
    return value


def _redacted() -> Callable[[T], T]:
    from oortriage.report.redaction import Redactor

    return Redactor().struct
