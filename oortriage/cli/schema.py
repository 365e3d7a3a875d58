"""``oortriage schema``: the JSON Schemas that scripts can hold on to."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

import typer

from oortriage.cli.output import say


class Kind(str, Enum):
    """Outputs that have a schema."""

    analyze = "analyze"
    reproduce = "reproduce"
    experiment = "experiment"
    fit = "fit"
    group = "group"
    watch = "watch"


def schema(
    of: Annotated[Kind, typer.Argument(help="The verb whose JSON it describes.")] = Kind.analyze,
) -> None:
    """Print the JSON Schema of a verb's output: of one diagnosis when none is named."""
    from oortriage.report import json as diagnosis
    from oortriage.report.groups import groups_schema
    from oortriage.report.replay import replay_schema
    from oortriage.report.watch import watch_schema

    if of is Kind.group:
        table = groups_schema()
    elif of is Kind.watch:
        table = watch_schema()
    else:
        table = diagnosis.schema() if of is Kind.analyze else replay_schema(of.value)
    say(json.dumps(table, indent=2))
