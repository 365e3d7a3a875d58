"""JSON: true to the diagnosis, to its own schema, and to whoever parses it."""

from __future__ import annotations

import json
from typing import Any, get_args

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.evidence.rule import Resource
from oortriage.report._interface import Style, open_report, render_all
from oortriage.report.json import encode, schema
from oortriage.triage.diagnosis import SCHEMA_VERSION, Diagnosis, Phase, Status
from tests.report._made import filled, hostile, made, rendered


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema())


def refuse(word: str) -> Any:
    raise AssertionError(f"{word} is no JSON")


def parsed(text: str) -> Any:
    """Parse JSON as strict as its standard: no NaN, no Infinity."""
    return json.loads(text, parse_constant=refuse)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_labelled_log_s_diagnosis_fits_the_schema(
    every: list[Diagnosis], validator: jsonschema.Draft202012Validator
) -> None:
    assert len(every) > 100
    wrong = {one.file: [error.message for error in validator.iter_errors(parsed(encode(one)))] for one in every}
    assert {name: messages for name, messages in wrong.items() if messages} == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("resource", "vram"),
        ("status", "dead"),
        ("phase", "lunch"),
        ("confidence", "high"),
        ("evidence", [{"file": "x"}]),
        ("numbers", {"required_bytes": "81920"}),
        ("bill", {"basis": "guess"}),
    ],
)
def test_the_schema_refuses_what_is_wrong(validator: jsonschema.Draft202012Validator, key: str, value: object) -> None:
    table = parsed(encode(made()))
    assert validator.is_valid(table)
    assert not validator.is_valid({**table, key: value})


@pytest.mark.parametrize("key", ["resource", "code", "confidence", "fingerprint", "status", "schema_version"])
def test_the_schema_asks_for_the_verdict(validator: jsonschema.Draft202012Validator, key: str) -> None:
    table = parsed(encode(made()))
    del table[key]
    assert not validator.is_valid(table)


def test_the_schema_knows_the_words_of_the_contract() -> None:
    fields = schema()["$defs"]["Diagnosis"]["properties"]
    assert set(fields["resource"]["enum"]) == set(get_args(Resource))
    assert set(fields["phase"]["enum"]) == set(get_args(Phase))
    assert set(fields["status"]["enum"]) == set(get_args(Status))


def test_the_version_is_in_every_diagnosis(every: list[Diagnosis]) -> None:
    assert SCHEMA_VERSION == 1
    assert {parsed(encode(one))["schema_version"] for one in every} == {1}


def test_nothing_is_lost_on_the_way(every: list[Diagnosis]) -> None:
    for one in every:
        assert msgspec.convert(parsed(encode(one)), Diagnosis) == one


@given(hostile | st.text())
def test_any_text_comes_through_json_unharmed(text: str) -> None:
    one = filled(text)
    encoded = encode(one)
    assert encoded.isascii()
    assert "\n" not in encoded
    assert all(character.isprintable() for character in encoded)
    assert msgspec.convert(parsed(encoded), Diagnosis) == one


def test_one_log_is_one_object() -> None:
    assert parsed(rendered("json", made()))["code"] == "SM101"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_where_several_are_asked_for_the_shape_does_not_depend_on_their_number(count: int) -> None:
    report = open_report("json", Style(many=True))
    assert len(parsed(render_all(report, [made()] * count))) == count


@pytest.mark.parametrize("count", [0, 2, 5])
def test_several_logs_are_an_array_in_their_order(count: int) -> None:
    codes = [f"SM{number}" for number in range(101, 101 + count)]
    table = parsed(rendered("json", *(made(code=code) for code in codes)))
    assert [one["code"] for one in table] == codes


def test_indented_json_is_the_same_object(chosen: dict[str, Diagnosis]) -> None:
    for one in chosen.values():
        assert parsed(rendered("json", one)) == parsed(encode(one))
