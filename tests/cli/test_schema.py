"""``oortriage schema``: the contract that scripts hold on to."""

from __future__ import annotations

import json

import jsonschema
import pytest

from oortriage.report.json import schema
from tests.cli.conftest import Run


def test_the_schema_printed_is_a_valid_one_and_the_one_used(run: Run) -> None:
    done = run("schema")
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed == schema()


@pytest.mark.parametrize("verb", ["reproduce", "experiment", "fit"])
def test_what_compiling_verbs_write_has_a_schema_too(run: Run, verb: str) -> None:
    done = run("schema", verb)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert verb in printed["title"]


def test_a_reproduction_fits_its_schema(run: Run) -> None:
    pytest.importorskip("triton")
    wanted = "--kernel reference.attention --gpu T4 --dtype float32 --head-size 256 --tile 32 --format json"
    result = json.loads(run("reproduce", *wanted.split()).stdout)
    jsonschema.validate(result, json.loads(run("schema", "reproduce").stdout))
