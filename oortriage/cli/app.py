"""The command: its verbs, and how an error becomes one line and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from oortriage import __version__
from oortriage.cli import (
    analyze,
    budget,
    cases,
    demo,
    device,
    doctor,
    experiment,
    explain,
    fit,
    group,
    kernels,
    lint,
    patch,
    report,
    reproduce,
    rules,
    run,
    schema,
    serve,
    snapshot,
    watch,
)
from oortriage.cli.output import ReaderGoneError, complain, escape_unprintable
from oortriage.cli.report import with_redact_value
from oortriage.cli.selectors import with_live_value
from oortriage.errors import OortriageError

app = typer.Typer(
    name="oortriage",
    help=(
        "Read a GPU crash log and say which memory ran out, with the line that proves it and what to change.\n\n"
        "Examples: `oortriage demo`, `oortriage analyze crash.log`, `kubectl logs pod | oortriage analyze -`."
    ),
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oortriage {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Hold the options that every verb shares."""


app.command("analyze")(analyze.analyze)
app.command("run", context_settings=run.SETTINGS)(run.run)
app.command("reproduce")(reproduce.reproduce)
app.command("experiment")(experiment.experiment)
app.command("group")(group.group)
app.command("report")(report.report)
app.command("fit")(fit.fit)
app.command("budget")(budget.budget)
app.command("kernels")(kernels.kernels)
app.command("snapshot")(snapshot.snapshot)
app.command("device")(device.device)
app.command("lint")(lint.lint)
app.command("doctor")(doctor.doctor)
app.command("watch")(watch.watch)
app.command("demo")(demo.demo)
app.command("explain")(explain.explain)
app.command("serve")(serve.serve)
app.command("schema")(schema.schema)
app.add_typer(rules.app, name="rules")
app.add_typer(cases.app, name="cases")
app.add_typer(patch.app, name="patch")


def main() -> None:
    """Run the command; errors print one line to stderr and end with their own exit code."""
    escape_unprintable()
    try:
        app(with_redact_value(with_live_value(sys.argv[1:])))
    except OortriageError as problem:
        complain(problem)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except ReaderGoneError:
        sys.exit(0)
