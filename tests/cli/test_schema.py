"""``oortriage schema``: the contract that scripts hold on to."""

from __future__ import annotations

import json

import jsonschema

from oortriage.report.json import schema
from tests.cli.conftest import Run


def test_the_schema_printed_is_a_valid_one_and_the_one_used(run: Run) -> None:
    done = run("schema")
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed == schema()
