"""``oortriage schema``: the JSON Schemas that scripts can hold on to."""

from __future__ import annotations

import json
from enum import Enum
from importlib import import_module
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
    budget_log = "budget-log"
    snapshot = "snapshot"
    lint = "lint"
    doctor = "doctor"
    watch = "watch"


#: Where each output's schema is made; imported for the one that is asked for.
_MADE_IN = {
    Kind.analyze: ("json", "schema"),
    Kind.group: ("groups", "groups_schema"),
    Kind.budget: ("budget", "budget_schema"),
    Kind.budget_log: ("budget_log", "log_schema"),
    Kind.snapshot: ("snapshot", "snapshot_schema"),
    Kind.lint: ("lint", "lint_schema"),
    Kind.doctor: ("doctor", "doctor_schema"),
    Kind.watch: ("watch", "watch_schema"),
}


def schema(
    of: Annotated[Kind, typer.Argument(help="The verb whose JSON it describes.")] = Kind.analyze,
) -> None:
    """Print the JSON Schema of a verb's output: of one diagnosis when none is named."""
    if of in _MADE_IN:
        module, name = _MADE_IN[of]
        table = getattr(import_module(f"oortriage.report.{module}"), name)()
    else:
        from oortriage.report.replay import replay_schema

        table = replay_schema(of.value)
    say(json.dumps(table, indent=2))
