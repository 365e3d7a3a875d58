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
    budget = "budget"
    lint = "lint"
    budget_log = "budget-log"
    snapshot = "snapshot"
    doctor = "doctor"


def schema(
    of: Annotated[Kind, typer.Argument(help="The verb whose JSON it describes.")] = Kind.analyze,
) -> None:
    """Print the JSON Schema of a verb's output: of one diagnosis when none is named."""
    from oortriage.report import json as diagnosis
    from oortriage.report.budget import budget_schema
    from oortriage.report.budget_log import log_schema
    from oortriage.report.doctor import doctor_schema
    from oortriage.report.groups import groups_schema
    from oortriage.report.lint import lint_schema
    from oortriage.report.replay import replay_schema
    from oortriage.report.snapshot import snapshot_schema

    if of is Kind.group:
        table = groups_schema()
    elif of is Kind.budget:
        table = budget_schema()
    elif of is Kind.lint:
        table = lint_schema()
    elif of is Kind.budget_log:
        table = log_schema()
    elif of is Kind.snapshot:
        table = snapshot_schema()
    elif of is Kind.doctor:
        table = doctor_schema()
    else:
        table = diagnosis.schema() if of is Kind.analyze else replay_schema(of.value)
    say(json.dumps(table, indent=2))
