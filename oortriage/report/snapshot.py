"""A memory snapshot for people and for scripts: text, json, markdown, svg; text says no more than JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from oortriage.evidence.values import format_bytes
from oortriage.report.document import Block, Code, Document, Items, Paragraph, Section, Table
from oortriage.report.issue import issue_markdown
from oortriage.report.plain import plain_text
from oortriage.report.words import decision_lines
from oortriage.snapshot.analyse import Device, Pool, Report, State, summary_of
from oortriage.snapshot.owners import Owner
from oortriage.snapshot.trace import Trace
from oortriage.snapshot.verdict import Verdict, pool_words

#: Owners, pools and OOM events that the readable formats show; JSON has all that were kept.
_OWNERS, _POOLS, _OOMS, _GROWN = 6, 8, 5, 5
#: Characters of a map, from idle to in use.
_SHADES = " ░▒▓█"
#: Parts of a path that a table shows.
_PARTS = 3
#: Values of settings that nobody set; JSON has them all.
_USUAL = ("", 0, 0.0, False, -1, 1, 2**63 - 1, 2**64 - 1)


def snapshot_report(report: Report, name: str, width: int = 80) -> str:
    """Render a report as ``text``, ``json``, ``markdown`` or ``svg``."""
    if name == "json":
        return json.dumps(msgspec.to_builtins(report), indent=2) + "\n"
    if name == "svg":
        from oortriage.report.draw.pool_bars import pool_bars_svg

        return pool_bars_svg(report)
    document = snapshot_document(report)
    return issue_markdown(document).text if name == "markdown" else plain_text(document, width)


def snapshot_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what ``snapshot`` writes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "oortriage snapshot, version 1",
        **msgspec.json.schema(Report),
    }


def snapshot_document(report: Report) -> Document:
    """Write the report as a document."""
    sections = [part for device in report.devices for part in _device_sections(device, many=len(report.devices) > 1)]
    settings = [f"{name} = {value}" for name, value in report.settings.items() if value not in _USUAL]
    facts: list[Block] = [Paragraph(f"{report.file}: {report.form}")]
    facts += [Items(settings)] if settings else []
    facts += [Items([f"note: {note}" for note in report.notes])] if report.notes else []
    sections.append(Section("environment", "The file and the allocator's settings", facts, importance=5))
    return Document(_title(report), _title(report), sections)


def _title(report: Report) -> str:
    judged = [one for one in report.devices if one.verdict]
    if not judged:
        return "Memory snapshot: no failed request in it"
    causes = "; ".join(f"device {one.device}: {_cause_words(one.verdict)}" for one in judged if one.verdict is not None)
    return f"Memory snapshot: {causes}"


def _cause_words(verdict: Verdict) -> str:
    return f"{verdict.cause.replace('_', ' ')}, {format_bytes(verdict.request_bytes)}"


def _device_sections(device: Device, *, many: bool) -> list[Section]:
    head = f"Device {device.device}: " if many else ""
    state = device.at_request or device.written
    found = [Section("verdict", _headed("the verdict", head), _verdict_blocks(device))]
    if device.verdict:
        steps = Items(decision_lines(device.verdict.steps), numbered=True)
        found.append(Section("evidence", _headed("the decision, step by step", head), [steps], importance=1))
    if device.remedies or device.will_not_help:
        found.append(Section("change", _headed("what to change", head), _change_blocks(device), importance=1))
    found.append(Section("figures", _headed(f"the pools, {device.moment}", head), _pool_blocks(state), importance=2))
    found.append(Section("ledger", _headed("who holds it", head), _owner_blocks(state.owners), importance=2))
    if device.at_request:
        text = f"reserved {format_bytes(device.written.reserved_bytes)}, in use "
        text += f"{format_bytes(device.written.allocated_bytes)}, idle {format_bytes(device.written.idle_bytes)}"
        found.append(Section("figures", _headed("as written", head), [Paragraph(text)], importance=3))
    if device.trace:
        found.append(Section("experiment", _headed("over the trace", head), _trace_blocks(device.trace), importance=3))
    if device.notes:
        found.append(Section("not_verified", _headed("notes", head), [Items(list(device.notes))], importance=4))
    return found


def _headed(title: str, head: str) -> str:
    """Put the device before a title, or begin it with a capital."""
    return head + title if head else title[:1].upper() + title[1:]


def _verdict_blocks(device: Device) -> list[Block]:
    blocks: list[Block] = []
    if device.verdict:
        blocks.append(Paragraph(f"{device.verdict.cause.replace('_', ' ')}: {device.verdict.summary}"))
    if device.request:
        one = device.request
        pool = f", {pool_words(one.pool)}" if one.pool else ""
        where = f"{_short(one.where)} ({one.function})" if one.function else one.where
        where += f", called from {_short(one.called_from)}" if one.called_from else ""
        blocks.append(Paragraph(f"The request of {one.request_bytes:,} bytes was made at {where}{pool}."))
    elif not device.verdict:
        blocks.append(Paragraph("No failed request is recorded. --request SIZE asks about one."))
    return [*blocks, Paragraph(f"{summary_of(device)}.")]


def _change_blocks(device: Device) -> list[Block]:
    blocks: list[Block] = []
    for at, one in enumerate(device.remedies, 1):
        # A setting is there to be copied; what is to be done is a sentence.
        if "=" in one.change.partition(" ")[0]:
            blocks += [Code(one.change, f"{at}", language="shell"), Paragraph(one.effect)]
        else:
            blocks.append(Paragraph(f"{at}: {one.change}: {one.effect}"))
        blocks += [Items(list(one.conditions))] if one.conditions else []
    vain = [f"will not help: {one.advice}: {one.why}" for one in device.will_not_help]
    return [*blocks, *([Items(vain)] if vain else [])]


def _pool_blocks(state: State) -> list[Block]:
    rows = [
        [
            _pool_name(one),
            str(one.segments),
            format_bytes(one.reserved_bytes),
            format_bytes(one.allocated_bytes),
            format_bytes(one.idle_bytes),
            format_bytes(one.largest_idle_bytes),
        ]
        for one in state.pools
    ]
    kinds = ", ".join(f"{one.segments:,} {name} ({format_bytes(one.bytes)})" for name, one in state.kinds.items())
    said = [f"segments: {kinds or 'none'}"]
    if state.awaiting_free_bytes:
        said.append(f"freed and still used by another stream: {format_bytes(state.awaiting_free_bytes)}")
    if any(one.name == "private" for one in state.pools):
        said.append("private pools (n, 0) were made by a capture, (0, n) by torch.cuda.MemPool or graph_pool_handle()")
    said.append(f"idle beside a live block, so that its segment stays: {format_bytes(state.split_idle_bytes)}")
    said.append(f"rounding within blocks in use: {format_bytes(state.rounding_bytes)}")
    if len(rows) > _POOLS:
        said.append(f"{len(rows) - _POOLS} more pools are in the JSON")
    maps = [_drawn(one) for one in state.pools[:_POOLS] if one.map]
    head = ["pool", "segments", "reserved", "in use", "idle", "largest idle"]
    drawn: list[Block] = [Code("\n".join(maps), "Full is in use, empty is idle, by address")] if maps else []
    return [Table(head, rows[:_POOLS], numeric=[1, 2, 3, 4, 5]), *drawn, Items(said)]


def _drawn(pool: Pool) -> str:
    """Draw a pool's map in characters, 60 to a line, a character for two cells."""
    pairs = [pool.map[at : at + 2] for at in range(0, len(pool.map), 2)]
    cells = "".join(_SHADES[-(-sum(pair) * (len(_SHADES) - 1) // (100 * len(pair)))] for pair in pairs)
    return f"{_pool_name(pool):>14}|{cells}|"


def _pool_name(pool: Pool) -> str:
    return pool.name if pool.name == "default" else f"{pool.name} ({pool.id[0]}, {pool.id[1]})"


def _owner_blocks(held: Sequence[Owner]) -> list[Block]:
    if not held:
        return [Paragraph("nothing is in use")]
    rows = [
        [format_bytes(one.bytes), f"{one.share:.1%}", f"{one.blocks:,}", f"{_short(one.where)} ({one.function})"]
        for one in held[:_OWNERS]
    ]
    called = [
        f"{_short(one.where)} was called from {', '.join(map(_short, one.called_from))}"
        for one in held[:_OWNERS]
        if one.called_from
    ]
    table = Table(["bytes", "share", "blocks", "line"], rows, numeric=[0, 1, 2])
    return [table, *([Items(called)] if called else [])]


def _trace_blocks(trace: Trace) -> list[Block]:
    spent = f" in {trace.seconds:,.1f} s" if trace.seconds is not None else ""
    begun = "they go back to the first allocation" if trace.whole else "they begin in the middle of the run"
    start, peak, end = trace.start, trace.peak, trace.end
    live = f"asked for and live: {format_bytes(start.live_bytes)} at first, {format_bytes(peak.live_bytes)} at the "
    when = f"event {peak.event:,}" if peak.event >= 0 else "before the first event"
    live += f"peak ({when}), {format_bytes(end.live_bytes)} at the end"
    held = f"reserved: {format_bytes(start.reserved_bytes)} at first, {format_bytes(end.reserved_bytes)} at the end"
    said = [f"{trace.events:,} event{'s' * (trace.events != 1)}{spent}; {begun}", live, held]
    said += [
        f"failed request, event {one.event:,}: {format_bytes(one.request_bytes)} at {_short(one.where)}"
        + ("" if one.device_free_bytes is None else f", {format_bytes(one.device_free_bytes)} free")
        for one in trace.ooms[-_OOMS:]
    ]
    blocks: list[Block] = [Items(said)]
    if trace.peak_owners:
        rows = [[format_bytes(one.bytes), f"{one.blocks:,}", _short(one.where)] for one in trace.peak_owners[:_OWNERS]]
        blocks.append(Table(["bytes", "blocks", "line"], rows, numeric=[0, 1], caption="Alive at the peak"))
    if trace.grown:
        rows = [
            [format_bytes(one.bytes), f"{one.blocks:,}", "every third" if one.steady else "", _short(one.where)]
            for one in trace.grown[:_GROWN]
        ]
        caption = "Allocated during the trace and still there at its end"
        blocks.append(Table(["bytes", "blocks", "grew in", "line"], rows, numeric=[0, 1], caption=caption))
    return blocks


def _short(where: str) -> str:
    """Keep the last parts of a path: what stands before says where somebody keeps files."""
    parts = where.replace("\\", "/").split("/")
    return where if len(parts) <= _PARTS else "…/" + "/".join(parts[-_PARTS:])
