"""One report a group: the example's verdict, redacted, as an issue takes it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from oortriage.api import Analyzer
from oortriage.cli.output import Sink, complain
from oortriage.errors import InputError
from oortriage.triage.groups import Group, Groups


def write_reports(groups: Groups, folder: Path, rules: Sequence[Path]) -> list[Path]:
    """Write a Markdown file for each group of failures and return the files; one name a group, whatever the run.

    The example's log is read again: the verdicts of all logs are not kept. One that is gone by now is told on stderr.

    Raises:
        UsageError: a file cannot be written.
    """
    analyzer = Analyzer(rules)
    written = []
    for group in groups.groups:
        if not group.exit_code:
            continue
        try:
            text = _report(group, analyzer)
        except InputError as problem:
            complain(f"no report of {group.key}: {problem}")
            continue
        path = folder / f"{_name(group)}.md"
        sink = Sink(path)
        sink.put(text)
        sink.close()
        written.append(path)
    return written


def _report(group: Group, analyzer: Analyzer) -> str:
    from oortriage.report.compose import compose
    from oortriage.report.document import Items, Section
    from oortriage.report.groups import rows_of
    from oortriage.report.issue import issue_markdown
    from oortriage.report.material import Material
    from oortriage.report.redaction import Redactor

    file = group.example.file
    if file == "<stdin>":
        raise InputError("standard input cannot be read a second time")
    redactor = Redactor()
    material = redactor.struct(
        Material(diagnosis=analyzer.file(file), commands=[f"oortriage analyze {shlex.quote(file)}"])
    )
    rows = [f"{label}: {redactor.text(text)}" for label, text in [("logs", f"{group.logs:,}"), *rows_of(group)]]
    document = compose(material, redactor.replaced)
    # After the verdict: what one log cannot say.
    seen = Section("figures", "In how many logs", [Items(rows)], importance=1)
    head = next((at for at, one in enumerate(document.sections) if one.key != "verdict"), len(document.sections))
    sections = [*document.sections[:head], seen, *document.sections[head:]]
    return issue_markdown(type(document)(document.title, document.verdict, sections)).text


def _name(group: Group) -> str:
    """Make a file name of a group; keys are fingerprints, codes and words of ours, or of the user's own rules."""
    parts = [group.resource, group.cause, group.key]
    return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-.") for part in parts if part)[:120]
