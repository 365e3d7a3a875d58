"""Text for a terminal: verdict first, evidence second, then what to change. Plain when piped."""

from __future__ import annotations

import io

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from oortriage.report._interface import Style
from oortriage.report.budget_words import odd_checks, share_end, use_words
from oortriage.report.draw.budget_bar import budget_bar_text
from oortriage.report.escape import visible
from oortriage.report.words import (
    bill_line,
    decision_lines,
    fact_line,
    number_line,
    other_line,
    proof,
    verdict,
    when_line,
)
from oortriage.triage.diagnosis import Diagnosis

#: What fits on one screen; JSON has all of it.
_PRESCRIPTIONS = 3
_ADVICE = 2
_RULED_OUT = 3
_MISSING = 2
_CHECKS = 2
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
            no_color=not self._style.color,  # or rich would ask NO_COLOR, which --color always overrules
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
    headline = visible(verdict(diagnosis))
    parts: list[RenderableType] = [
        Text(headline[:1].upper() + headline[1:], style=f"bold {color}"),
        Text(visible(diagnosis.summary)),
    ]
    parts += _root_line(diagnosis, width)
    rows = [
        ("figures", number_line(diagnosis)),
        ("seen", fact_line(diagnosis)),
        ("when", when_line(diagnosis)),
        ("bill", bill_line(diagnosis.bill)),
        ("compiled", bill_line(diagnosis.compiled_bill)),
        *((f"not {one.resource}", one.reason) for one in diagnosis.ruled_out[:_RULED_OUT]),
        (
            "masked by",
            "; ".join(f"line {mask.line}: {mask.title}" for mask in diagnosis.masked_by[:2]),
        ),
        *(("note", note) for note in diagnosis.notes),
        *(("also", other_line(one)) for one in diagnosis.others[:2]),
    ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in rows:
        if text:
            grid.add_row(label, Text(visible(text)))
    parts += [Text(""), grid] if grid.row_count else []
    parts += _budget(diagnosis, width)
    parts += _decision(diagnosis)
    parts += _changes(diagnosis)
    parts += _list("What would make this surer", "bold", diagnosis.missing[:_MISSING])
    tail = f"{diagnosis.code or '-'}  confidence {diagnosis.confidence:.2f}  {diagnosis.fingerprint}"
    parts.append(Text(f"\n{tail}", style="dim"))
    return Group(*parts)


def _root_line(diagnosis: Diagnosis, width: int) -> list[RenderableType]:
    if not diagnosis.evidence:
        return []
    root = diagnosis.evidence[0]
    return [
        Text(f"\n{visible(root.file)}:{root.line}:{root.column}", style="cyan"),
        Padding(Text(proof(root, 3 * (width - 2)), style="bold"), (0, 0, 0, 2)),
    ]


def _budget(diagnosis: Diagnosis, width: int) -> list[RenderableType]:
    """Draw the engine's budget, and say what in it does not come out; JSON has every figure."""
    view = diagnosis.budget
    if view is None:
        return []
    said = odd_checks(view)[:_CHECKS] + [line for line in (use_words(view.use),) if line]
    if not view.parts and not said:
        return []
    drawn = budget_bar_text(view.parts, share_end(view), Style(width=width - 2)) if view.parts else ""
    picture: list[RenderableType] = [Padding(Text(drawn, no_wrap=True), (0, 0, 0, 2))] if drawn else []
    return [Text("\nMemory budget", style="bold"), *picture, *_list("", "", said)[1:]]


def _decision(diagnosis: Diagnosis) -> list[RenderableType]:
    """List the tests by which the cause was decided, each with its numbers."""
    if not diagnosis.decision:
        return []
    grid = Table.grid(padding=(0, 1, 0, 0))
    for number, line in enumerate(decision_lines(diagnosis.decision), 1):
        grid.add_row(f"  {number}.", Text(visible(line)))
    return [Text("\nDecided by", style="bold"), grid]


def _changes(diagnosis: Diagnosis) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if diagnosis.prescriptions:
        parts.append(Text("\nChange", style="bold green"))
    for number, one in enumerate(diagnosis.prescriptions[:_PRESCRIPTIONS], 1):
        parts.append(Padding(Text(f"{number}. {visible(one.change)}", style="bold"), (0, 0, 0, 2)))
        effect = one.effect.rstrip(".") + (f" (cost: {one.cost})" if one.cost else "")
        if effect:
            parts.append(Padding(Text(visible(effect)), (0, 0, 0, 5)))
    advice = [f"{bad.advice}: {bad.why}" for bad in diagnosis.will_not_help[:_ADVICE]]
    return parts + _list("Will not help", "bold yellow", advice)


def _list(title: str, style: str, items: list[str]) -> list[RenderableType]:
    if not items:
        return []
    grid = Table.grid(padding=(0, 1, 0, 0))
    for item in items:
        grid.add_row("  -", Text(visible(item)))
    return [Text(f"\n{title}", style=style), grid]
