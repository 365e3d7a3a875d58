"""``oortriage schema``: the JSON Schema that scripts can hold on to."""

from __future__ import annotations

import json

from oortriage.cli.output import say


def schema() -> None:
    """Print the JSON Schema of one diagnosis."""
    from oortriage.report.json import schema as build

    say(json.dumps(build(), indent=2))
