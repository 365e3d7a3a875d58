"""``oortriage report``: what is known of a failure, redacted, as one page; and on GitHub, where it is asked for."""

from __future__ import annotations

import contextlib
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Color, Sink, ask, complain, say, style_for
from oortriage.cli.report_material import Wanted, gather
from oortriage.errors import UsageError

#: What a bare ``--no-redact`` stands for.
_ASK = "ask"


class ReportFormat(str, Enum):
    """Formats of ``oortriage report``."""

    markdown = "markdown"
    html = "html"
    json = "json"
    sarif = "sarif"
    text = "text"


def report(
    log: Annotated[str, typer.Argument(metavar="LOG|REPORT.json", help="A crash log, or - for standard input.")],
    format: Annotated[ReportFormat, typer.Option("--format", "-f", help="Output format.")] = ReportFormat.markdown,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    color: Annotated[Color, typer.Option("--color", hidden=True)] = Color.auto,
    reproduce: Annotated[
        bool, typer.Option("--reproduce", help="Compile the failing kernel again (needs Triton, no GPU).")
    ] = False,
    experiment: Annotated[
        bool, typer.Option("--experiment", help="Compile it over a grid of settings (needs Triton, no GPU).")
    ] = False,
    reproduction: Annotated[
        Path | None, typer.Option("--reproduction", help="What `oortriage reproduce --format json` wrote.")
    ] = None,
    experiment_file: Annotated[
        Path | None, typer.Option("--experiment-file", help="What `oortriage experiment --format json` wrote.")
    ] = None,
    verification: Annotated[
        Path | None, typer.Option("--verification", help="What `oortriage patch verify --format json` wrote.")
    ] = None,
    no_redact: Annotated[
        str,
        typer.Option(
            "--no-redact",
            metavar="[publish]",
            help="Leave tokens, names and prompts in. Asks for a word; a script says --no-redact=publish.",
        ),
    ] = "",
    post: Annotated[
        str,
        typer.Option(
            "--post", metavar="OWNER/REPO#N", help="Comment on this issue, or update the comment made before."
        ),
    ] = "",
    new: Annotated[
        str, typer.Option("--new", metavar="OWNER/REPO", help="Open an issue, in the project's own bug form if known.")
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Post without asking, also where there may be duplicates.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the request that would be made, and change nothing.")
    ] = False,
    api_url: Annotated[
        str, typer.Option("--api-url", help="The API of a GitHub Enterprise: https://HOST/api/v3. GH_HOST counts, too.")
    ] = "",
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="End with 0 also when a failure was found.")] = False,
) -> None:
    """Write a report of a failure that can be handed on: redacted, within what an issue may hold.

    Nothing leaves the machine without --post or --new; with them the text is announced first, and a question
    asked. The address of what was posted goes to standard output. Ends with 0 when no resource failure was
    found, 1 when one was found, 3 when the log does not hold the cause, 2 on an error or where the answer was no.

    Examples: `oortriage report crash.log`, `oortriage report crash.log --reproduce --format html -o crash.html`,
    `oortriage report crash.log --post owner/repo#12`.
    """
    from oortriage.cli.selectors import read_diagnosis
    from oortriage.config import find_config
    from oortriage.report.compose import compose
    from oortriage.report.redaction import Redactor
    from oortriage.report.rendering import rendered

    if post and new:
        raise UsageError("--post and --new do not go together")
    if (dry_run or api_url or yes) and not (post or new):
        raise UsageError("--yes, --dry-run and --api-url go with --post or --new")
    post_job = None
    if post or new:
        from oortriage.cli.report_post import PostJob

        post_job = PostJob.of(post, new, api_url, yes=yes, dry_run=dry_run)
    open_text = _unredacted(no_redact)
    diagnosis = read_diagnosis(log)
    assert diagnosis is not None
    name = "crash.log" if log == "-" else log
    wanted = Wanted(name, reproduce, experiment, reproduction, experiment_file, verification)
    material = gather(diagnosis, wanted)
    redactor = Redactor()
    if not open_text:
        material = redactor.struct(material)
    replaced = redactor.replaced
    document = compose(material, replaced)
    config = find_config()
    if post_job is None or output is not None:
        style = style_for(color, output)
        style.rule_folders = config.rule_folders
        text, cut = rendered(format.value, document, material, replaced, style)
        for one in cut:
            complain(f"cut to fit into an issue: {one}")
        with contextlib.closing(Sink(output)) as sink:
            sink.put(text)
    if post_job is not None:
        said = post_job.run(document, material.diagnosis, diagnosis.fingerprint, replaced, redacted=not open_text)
        say(said)
    raise typer.Exit(0 if exit_zero or config.exit_zero else diagnosis.exit_code)


def with_redact_value(arguments: list[str]) -> list[str]:
    """Give a bare ``--no-redact`` of this verb its value: what follows it is the log, or another option."""
    if arguments[:1] != ["report"]:
        return arguments
    own = arguments.index("--") if "--" in arguments else len(arguments)
    return [f"--no-redact={_ASK}" if one == "--no-redact" else one for one in arguments[:own]] + arguments[own:]


def _unredacted(value: str) -> bool:
    """Say whether the report stays as it is: only after the word that the user types or the script gives.

    Raises:
        UsageError: another word, or nobody there to type it.
    """
    from oortriage.report.redaction import QUESTION, confirm_unredacted

    if not value:
        return False
    if value == _ASK:
        if not sys.stdin.isatty():
            raise UsageError(
                "--no-redact asks for a word, and nobody is there to type it; a script says --no-redact=publish"
            )
        value = ask(QUESTION)
    if not confirm_unredacted(value):
        raise UsageError("not confirmed: nothing was written. Leave --no-redact out for a redacted report")
    return True
