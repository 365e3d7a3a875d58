"""Text for a terminal: verdict first, evidence second, then what to change. Plain when piped."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from oortriage.report._interface import Style
from oortriage.report.escape import shorten, visible
from oortriage.report.words import fact_line, number_line, verdict
from oortriage.triage.diagnosis import Diagnosis

_PRESCRIPTIONS = 3
_ADVICE = 3
_COLORS = {"none": "green", "undetermined": "yellow"}


class Format:
    """One screen a log."""

    def __init__(self, style: Style) -> None:
        """Keep the terminal's width and whether it takes colour."""
        self._style = style

    def begin(self) -> str:
        """Nothing comes first."""
        return ""

    def render(self, diagnosis: Diagnosis, *, first: bool) -> str:
        """Write one diagnosis."""
        sink = io.StringIO()
        console = Console(
            file=sink,
            width=max(40, self._style.width),
            force_terminal=self._style.color,
            color_system="standard" if self._style.color else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        if not first:
            console.print()
        console.print(_page(diagnosis, console.width))
        # Rich pads wrapped lines with spaces; a pasted report should not carry them.
        return "\n".join(line.rstrip() for line in sink.getvalue().splitlines()) + "\n"

    def end(self, diagnoses: int) -> str:
        """Nothing comes last."""
        return ""


def _page(diagnosis: Diagnosis, width: int) -> RenderableType:
    color = _COLORS.get(diagnosis.resource, "red")
    parts: list[RenderableType] = [
        Text.assemble((visible(verdict(diagnosis)).upper()[:1] + visible(verdict(diagnosis))[1:], f"bold {color}")),
        Text(visible(diagnosis.summary)),
    ]
    _evidence(parts, diagnosis, width)
    _labelled(parts, "figures", number_line(diagnosis))
    _labelled(parts, "seen", fact_line(diagnosis))
    where = [] if diagnosis.phase == "unknown" else [f"phase {diagnosis.phase.replace('_', ' ')}"]
    if diagnosis.occurrences > 1:
        where.append(f"printed {diagnosis.occurrences} times")
    if len(diagnosis.streams) > 1:
        where.append(f"by {len(diagnosis.streams)} processes")
    _labelled(parts, "when", ", ".join(where))
    if diagnosis.bill:
        _labelled(
            parts,
            "bill",
            f"{diagnosis.bill.total_bytes:,} = "
            + " + ".join(f"{term.expression} ({term.bytes:,})" for term in diagnosis.bill.terms)
            + f". {diagnosis.bill.note[:1].upper()}{diagnosis.bill.note[1:]}.",
        )
    for ruled in diagnosis.ruled_out:
        proof = f" (line {ruled.line})" if ruled.line else ""
        _labelled(parts, f"not {ruled.resource}", ruled.reason + proof)
    _changes(parts, diagnosis)
    _missing(parts, diagnosis)
    for note in diagnosis.notes:
        _labelled(parts, "note", note)
    for other in diagnosis.others[:3]:
        _labelled(parts, "also", f"{other.code} ({other.resource}), line {other.line}, {other.relation.replace('_', ' ')}")
    tail = f"{diagnosis.code or '-'}  confidence {diagnosis.confidence:.2f}  {diagnosis.fingerprint}"
    parts.append(Text(f"\n{tail}", style="dim"))
    return Group(*parts)


def _evidence(parts: list[RenderableType], diagnosis: Diagnosis, width: int) -> None:
    if not diagnosis.evidence:
        return
    root = diagnosis.evidence[0]
    parts.append(Text(f"\n{visible(root.file)}:{root.line}:{root.column}", style="cyan"))
    text = shorten(visible(root.text.strip()), 3 * (width - 4), root.column)
    parts.append(Padding(Text(text, style="bold"), (0, 0, 0, 2)))
    if diagnosis.masked_by:
        names = ", ".join(f"{mask.title} (line {mask.line})" for mask in diagnosis.masked_by[:3])
        _labelled(parts, "only reports it", names)
    parts.append(Text(""))


def _labelled(parts: list[RenderableType], label: str, text: str) -> None:
    if text:
        parts.append(Text.assemble((f"{label}: ", "bold"), visible(text)))


def _changes(parts: list[RenderableType], diagnosis: Diagnosis) -> None:
    if diagnosis.prescriptions:
        parts.append(Text("\nChange", style="bold green"))
        for number, one in enumerate(diagnosis.prescriptions[:_PRESCRIPTIONS], 1):
            parts.append(Padding(Text(f"{number}. {visible(one.change)}", style="bold"), (0, 0, 0, 2)))
            effect = one.effect + (f" Cost: {one.cost}." if one.cost else "")
            if effect:
                parts.append(Padding(Text(visible(effect)), (0, 0, 0, 5)))
    if diagnosis.will_not_help:
        parts.append(Text("\nWill not help", style="bold yellow"))
        for bad in diagnosis.will_not_help[:_ADVICE]:
            parts.append(Padding(Text(f"- {visible(bad.advice)}: {visible(bad.why)}"), (0, 0, 0, 2)))


def _missing(parts: list[RenderableType], diagnosis: Diagnosis) -> None:
    if diagnosis.missing:
        parts.append(Text("\nWhat would make this surer", style="bold"))
        for item in diagnosis.missing:
            parts.append(Padding(Text(f"- {visible(item)}"), (0, 0, 0, 2)))
