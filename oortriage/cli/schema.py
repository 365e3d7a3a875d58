"""``oortriage schema``: the JSON Schema that scripts can hold on to."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON Schema of one diagnosis."""
    from oortriage.report.json import schema as build

    typer.echo(json.dumps(build(), indent=2))
