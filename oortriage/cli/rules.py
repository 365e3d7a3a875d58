"""``oortriage rules``: list, show, check and score the rules."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import say
from oortriage.errors import RuleError, UsageError
from oortriage.report.escape import visible

app = typer.Typer(
    help="List, show, check and score the rules.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class TableFormat(str, Enum):
    """Formats of the verbs that print a table."""

    text = "text"
    json = "json"


_Format = Annotated[TableFormat, typer.Option("--format", "-f", help="Output format.")]
_Folders = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FOLDER...]", help="Folders of rules; the built-in ones when none is given."),
]


@app.command("list")
def list_rules(
    format: _Format = TableFormat.text,
) -> None:
    """List the rules: code, role, resource, title."""
    from oortriage.api import configured_rules

    rules = sorted(configured_rules(), key=lambda rule: rule.code)
    if format is TableFormat.json:
        say(
            json.dumps(
                [
                    {
                        "code": rule.code,
                        "name": rule.name,
                        "role": rule.role,
                        "resource": rule.resource,
                        "software": rule.software,
                        "title": rule.title,
                    }
                    for rule in rules
                ],
                indent=2,
            )
        )
        return
    for rule in rules:
        say(f"{rule.code}  {rule.role:9}  {rule.resource:14}  {rule.title}")


@app.command("show")
def show(
    code: Annotated[str, typer.Argument(metavar="CODE", help="A rule's code, such as SM101.")],
) -> None:
    """Print a rule's file."""
    from oortriage.api import find_rule
    from oortriage.evidence.loader import rule_file

    rule = find_rule(code)
    if rule is None:
        raise UsageError(f"no rule {code!r}; `oortriage rules list` shows them")
    say(rule_file(rule).read_text(encoding="utf-8"), end="")


@app.command("lint")
def lint(folders: _Folders = None) -> None:
    """Check rule files: format, patterns, anchors, docs. Each mistake with its file and line."""
    from oortriage.evidence.lint import lint_folder
    from oortriage.evidence.loader import rules_folder

    problems = [one for folder in folders or [rules_folder()] for one in lint_folder(folder)]
    for problem in problems:
        say(visible(problem))
    if problems:
        raise RuleError(f"{len(problems)} problem(s)")
    say("no problems")


@app.command("test")
def test(folders: _Folders = None) -> None:  # noqa: PT028 - a verb, not a test
    """Run every rule against its own samples and counter-samples."""
    from oortriage.api import configured_rules
    from oortriage.evidence.check import check_all
    from oortriage.evidence.loader import load_folder, users_rules

    rules = tuple(rule for folder in folders for rule in load_folder(folder)) if folders else configured_rules()
    findings = check_all(rules, guarded=users_rules(rules))
    for finding in findings:
        say(visible(f"{finding.code}: {finding.problem}"))
    samples = sum(len(rule.sample) + len(rule.counter) for rule in rules)
    if findings:
        raise RuleError(f"{len(findings)} of {samples} samples of {len(rules)} rules failed")
    say(f"{samples} samples of {len(rules)} rules passed")


@app.command("reference")
def reference() -> None:
    """Print the rule reference, a table of all rules by family, as Markdown."""
    from oortriage.evidence.loader import built_in_rules
    from oortriage.evidence.reference import reference as build

    say(build(built_in_rules()), end="")


@app.command("score")
def score(
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="A folder of labelled cases.")],
    show_all: Annotated[bool, typer.Option("--all", help="List the cases that are right, too.")] = False,
    format: _Format = TableFormat.text,
) -> None:
    """Score the verdicts on labelled cases: precision and recall per resource and cause."""
    from oortriage.scoring.score import score_folder
    from oortriage.scoring.table import as_json, as_text

    result = score_folder(cases)
    say(as_json(result) if format is TableFormat.json else as_text(result, show_all=show_all))
    raise typer.Exit(0 if result.passed else 1)
