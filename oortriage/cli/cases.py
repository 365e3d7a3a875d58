"""``oortriage cases``: make a labelled case, bless the tool's verdict on it, show the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import say
from oortriage.errors import UsageError

app = typer.Typer(
    help="Make, bless and compare labelled cases.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("new")
def new(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log the case is made from.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The case's folder; it must not exist.")],
    source: Annotated[str, typer.Option("--source", help="Where the figures come from: an address, or a run.")] = "",
    origin: Annotated[str, typer.Option("--origin", help="run or public.")] = "public",
) -> None:
    """Copy a log into a new case with the verdict that the tool gives now, to be corrected by hand."""
    from oortriage.scoring.make import new_case

    say(str(new_case(log, folder, source=source, origin=origin)))


@app.command("diff")
def diff(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A case, or a folder of cases.")],
) -> None:
    """Show where the tool's verdicts differ from the labels; ends with 1 when some do."""
    from oortriage.scoring.score import score_folder

    bad = [one for one in score_folder(folder).verdicts if one.problems]
    for one in bad:
        say(f"{one.case.name}")
        for problem in one.problems:
            say(f"    {problem}")
    raise typer.Exit(1 if bad else 0)


@app.command("bless")
def bless(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The one case to bless.")],
) -> None:
    """Replace one case's label by the verdict that the tool gives now. Read the diff first."""
    from oortriage.scoring.make import bless_case

    if not (folder / "case.toml").is_file():
        raise UsageError(f"{folder}: not a case; one case is blessed at a time")
    say(str(bless_case(folder / "case.toml")))
