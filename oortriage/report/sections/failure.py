"""What happened: the verdict in a sentence, the figures, and the lines of the log that prove it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oortriage.evidence.values import format_bytes
from oortriage.report._interface import Style
from oortriage.report.document import Block, Code, Figure, Items, Paragraph, Table
from oortriage.report.draw.limit_bar import Against, limit_bar_svg, limit_bar_text
from oortriage.report.escape import shorten
from oortriage.report.material import Material
from oortriage.report.words import (
    RESOURCE_WORDS,
    decision_lines,
    number_line,
    number_rows,
    other_line,
    proof,
    verdict,
    when_line,
)
from oortriage.triage.diagnosis import Diagnosis, Evidence

#: Characters of an issue's title, of the line that proves it, and of any other line.
_TITLE, _ROOT, _LINE = 120, 4_000, 1_000
_STATES = {"none": "No resource ran out", "device_context": "There was no usable device"}
#: What was wanted, and what there was.
_PAIRS = (
    ("required_bytes", "limit_bytes"),
    ("required_threads", "limit_threads"),
    ("required_columns", "limit_columns"),
    ("kv_needed_bytes", "kv_available_bytes"),
    ("max_model_len", "kv_tokens"),
    ("requested_tokens", "available_tokens"),
    ("wanted_bytes", "free_bytes"),
    ("requested_bytes", "free_bytes"),
)
_ROLES = {
    "root": "The line that proves it",
    "same_failure": "The same failure, printed again",
    "wrapper": "Lines that report it without its cause",
    "recovered": "Survived",
    "context": "Beside it",
}


def title_of(diagnosis: Diagnosis) -> str:
    """Write a title for an issue: resource, cause, figures, in one line of at most 120 characters."""
    words = verdict(diagnosis)
    figures = _short_figures(diagnosis)
    title = f"{words[:1].upper()}{words[1:]}" + (f" ({figures})" if figures else "")
    return shorten(" ".join(title.split()), _TITLE)


def _short_figures(diagnosis: Diagnosis) -> str:
    """Name what was wanted and what there was; where the log names only one of them, the first two figures."""
    numbers = diagnosis.numbers
    names = next((pair for pair in _PAIRS if all(name in numbers for name in pair)), tuple(numbers)[:2])
    return number_line(msgspec.structs.replace(diagnosis, numbers={name: numbers[name] for name in names}))


def sentence(diagnosis: Diagnosis) -> str:
    """Say in one sentence what ran out, why and when."""
    if diagnosis.resource == "undetermined":
        return "The log does not tell which memory ran out, if any did."
    words = RESOURCE_WORDS[diagnosis.resource]
    state = _STATES.get(diagnosis.resource) or f"{words[:1].upper()}{words[1:]} ran out"
    aside = [
        f"cause: {diagnosis.cause.replace('_', ' ')}" if diagnosis.cause else "",
        when_line(diagnosis),
    ]
    known = "; ".join(one for one in aside if one)
    return f"{state} ({known})." if known else f"{state}."


def verdict_blocks(material: Material) -> list[Block]:
    """Give the verdict, what the log's own figures add to it, and how sure that is."""
    diagnosis = material.diagnosis
    sure = f"{diagnosis.code or 'no code'}, {diagnosis.status}, confidence {diagnosis.confidence:.2f}"
    blocks: list[Block] = [Paragraph(sentence(diagnosis))]
    blocks += [Paragraph(diagnosis.summary)] if diagnosis.summary else []
    return [*blocks, Paragraph(sure)]


def figure_blocks(material: Material) -> list[Block]:
    """Tabulate the log's figures, and by how much what was wanted exceeds what there was."""
    diagnosis = material.diagnosis
    rows = [list(row) for row in number_rows(diagnosis)]
    if not rows:
        nothing = diagnosis.resource in ("none", "undetermined")
        return [] if nothing else [Paragraph("The log prints no figures for this failure.")]
    return [*_bars(diagnosis), Table(["figure", "exact", "rounded"], [*rows, *_excess(diagnosis)], numeric=[1, 2])]


def _bars(diagnosis: Diagnosis) -> list[Block]:
    """Draw what was wanted beside what there was, where the log names both."""
    numbers = diagnosis.numbers
    for wanted, had in _PAIRS:
        if numbers.get(wanted, -1) >= 0 and numbers.get(had, -1) >= 0:
            against = Against(numbers[wanted], numbers[had], _short(wanted), _short(had), _unit(wanted))
            drawn = limit_bar_text(against, Style(width=80))
            return [Figure(limit_bar_svg(against), f"{against.sentence()}.", drawn)]
    return []


def _short(name: str) -> str:
    return name.removesuffix("_bytes").removesuffix("_threads").removesuffix("_columns").replace("_", " ")


def _unit(name: str) -> str:
    return "B" if name.endswith("_bytes") else name.rpartition("_")[2].removesuffix("len") or "tokens"


def _excess(diagnosis: Diagnosis) -> list[list[str]]:
    numbers = diagnosis.numbers
    for wanted, had in _PAIRS:
        if wanted in numbers and had in numbers and numbers[wanted] > numbers[had]:
            over = int(numbers[wanted] - numbers[had])
            share = f", {over / numbers[had]:.1%} more than there is" if numbers[had] > 0 else ""
            in_bytes = wanted.endswith("_bytes")
            rounded = format_bytes(over) if in_bytes and over >= 2**20 else ""
            return [["over by", f"{over:,}{' B' if in_bytes else ''}{share}", rounded]]
    return []


def evidence_blocks(material: Material) -> list[Block]:
    """Quote the lines with file and number, the one that proves it first; then what they rule out."""
    diagnosis = material.diagnosis
    blocks: list[Block] = []
    for role, words in _ROLES.items():
        if lines := [one for one in diagnosis.evidence if one.role == role]:
            blocks.append(Code(_quoted(lines), words))
    said = [
        f"not {one.resource.replace('_', ' ')}: {one.reason}" + (f" (line {one.line})" if one.line else "")
        for one in diagnosis.ruled_out
    ]
    said += [f"masked by line {one.line}: {one.title} ({one.code})" for one in diagnosis.masked_by]
    said += [f"also in the log: {other_line(one)}" for one in diagnosis.others]
    said += [f"note: {one}" for one in diagnosis.notes]
    if diagnosis.decision:
        blocks.append(Items([f"decided by: {one}" for one in decision_lines(diagnosis.decision)], numbered=True))
    return [*blocks, *([Items(said)] if said else [])]


def _quoted(lines: Sequence[Evidence]) -> str:
    # Several rules may know one line; and a line is a line here, whatever stands in it.
    quoted = (
        f"{one.file}:{one.line}: {proof(one, _ROOT if one.role == 'root' else _LINE)}".replace("\n", "\\n")
        for one in lines
    )
    return "\n".join(dict.fromkeys(quoted))
