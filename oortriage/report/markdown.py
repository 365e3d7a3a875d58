"""Markdown for an issue: the same verdict, everything from the log escaped or in code."""

from __future__ import annotations

from oortriage.report._interface import Style
from oortriage.report.budget_words import check_words, figure_rows, use_words
from oortriage.report.escape import code_block, code_span, markdown
from oortriage.report.words import RESOURCE_WORDS, decision_lines, fact_line, number_line, proof, verdict
from oortriage.triage.diagnosis import Diagnosis


class Format:
    """One section a log."""

    def __init__(self, style: Style) -> None:
        """Take a style, which a page has no use for."""

    def begin(self) -> str:
        """Nothing comes first."""
        return ""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Write one diagnosis."""
        lines = [] if first else ["", "---", ""]
        lines += [
            f"## {markdown(verdict(diagnosis)[:1].upper() + verdict(diagnosis)[1:])}",
            "",
            markdown(diagnosis.summary),
            "",
        ]
        if diagnosis.evidence:
            root = diagnosis.evidence[0]
            place = code_span(f"{root.file}:{root.line}:{root.column}")
            lines += [place, "", code_block(proof(root, 1200)), ""]
        rows = [
            ("code", diagnosis.code),
            ("resource", f"{diagnosis.resource} ({RESOURCE_WORDS[diagnosis.resource]})"),
            ("phase", diagnosis.phase),
            ("status", diagnosis.status),
            ("figures", number_line(diagnosis)),
            ("seen", fact_line(diagnosis)),
            ("confidence", f"{diagnosis.confidence:.2f}"),
        ]
        lines += ["| | |", "|---|---|"]
        lines += [f"| {label} | {markdown(text)} |" for label, text in rows if text]
        lines.append(f"| fingerprint | {code_span(diagnosis.fingerprint)} |")  # to be copied: no break in it
        for title, bill in (("Bill", diagnosis.bill), ("Compiled bill", diagnosis.compiled_bill)):
            if bill:
                lines += ["", f"**{title}.** {markdown(bill.note)}", "", "| buffer | bytes |", "|---|---:|"]
                lines += [f"| {markdown(term.expression)} | {term.bytes:,} |" for term in bill.terms]
                lines += [f"| sum | {bill.total_bytes:,} |"]
        lines += _budget(diagnosis)
        if diagnosis.decision:
            lines += ["", "**Decided by**", ""]
            told = decision_lines(diagnosis.decision)
            lines += [f"{number}. {markdown(line)}" for number, line in enumerate(told, 1)]
        if diagnosis.ruled_out:
            lines += ["", "**Ruled out**", ""]
            lines += [
                f"- {markdown(one.resource)}: {markdown(one.reason)}" + (f" (line {one.line})" if one.line else "")
                for one in diagnosis.ruled_out
            ]
        if diagnosis.prescriptions:
            lines += ["", "**Change**", ""]
            for number, one in enumerate(diagnosis.prescriptions, 1):
                lines.append(f"{number}. {code_span(one.change)}: {markdown(one.effect)}")
                extra = [
                    f"cost: {one.cost.rstrip('.')}" if one.cost else "",
                    f"verify: {one.verify}" if one.verify else "",
                ]
                lines += [f"   {markdown('; '.join(part for part in extra if part))}"] if any(extra) else []
        if diagnosis.will_not_help:
            lines += ["", "**Will not help**", ""]
            lines += [f"- {markdown(one.advice)}: {markdown(one.why)}" for one in diagnosis.will_not_help]
        if diagnosis.missing:
            lines += ["", "**Missing**", ""]
            lines += [f"- {markdown(item)}" for item in diagnosis.missing]
        for note in diagnosis.notes:
            lines += ["", f"Note: {markdown(note)}"]
        return "\n".join(lines) + "\n"

    def end(self, diagnoses: int) -> str:
        """Nothing comes last."""
        return ""


def _budget(diagnosis: Diagnosis) -> list[str]:
    """Tabulate the engine's memory budget, and say where a printed figure is not the sum of the others."""
    view = diagnosis.budget
    if view is None:
        return []
    lines = ["", "**Memory budget**", "", "| figure | value | | from |", "|---|---:|---|---|"]
    lines += [f"| {' | '.join(markdown(cell) for cell in row)} |" for row in figure_rows(view)]
    said = [check_words(one) for one in view.checks if not one.agrees]
    said += [use_words(view.use)] if view.use else []
    return [*lines, "", *(f"- {markdown(one)}" for one in said)] if said else lines
