"""Report of a cost measurement as text; JSON is the structure itself."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from oortriage.fix.cost_table import BASE, CONTROL, Code, Cost, CostRow, Launch
from oortriage.fix.rules import find_rule
from oortriage.report.escape import visible

_WIDTH = 100
_REFUSED = "refused"
_JSON = "the JSON (--format json --output FILE)"


def cost_text(result: Cost) -> str:
    """Show what is recommended and why: times as ratios, their means, machine code, and what is open."""
    how = "as it is" if result.mode == "native" else f"playing {result.target}"
    launched = f"vLLM {result.vllm or '(version unknown)'}'s attention in FP32 with head size 256"
    checked = f"{result.checks} outputs held against float64, the largest error {result.largest_error:.1e}"
    head = [
        f"{launched} on {result.device}, {how}, limit {result.limit_bytes:,} bytes",
        f"{checked}; two turns of the same launch differ {result.drift:.3f} times",
        *(f"PROBLEM: {one}" for one in result.problems),
    ]
    return "\n".join(
        [
            _page(head),
            _section("TILE16's time, and how many times as fast the others are", _ratios(result)),
            _section("Geometric means; in brackets against the control, where it ran", _means(result)),
            _section("Machine code, a thread: ptxas for sm_75, and the driver's of what was timed", _codes(result)),
            closing_text(result),
        ]
    )


def closing_text(result: Cost, file: str = "") -> str:
    """Say what is recommended, what is open, and how to send the result; ``file``: where its JSON is."""
    said = f"recommended: {result.recommendation}" if result.recommended else result.recommendation
    again = f"oortriage patch measure{f' --vllm {result.vllm}' if result.vllm else ''} --format json --output t4.json"
    ask = [f"On a T4, `{again}` settles it."] if result.open else []
    send = (
        f"To let others have it, attach {file or _JSON} to an issue of this project: it names neither this machine nor "
        "a place on it."
    )
    environment = ", ".join(f"{name} {value}" for name, value in result.environment.items() if name != "device")
    lines = [said, *(f"only a real sm_75 card can settle: {one}" for one in result.open), *ask, send]
    return _page([*lines, *(f"note: {one}" for one in result.notes), f"measured with {environment}"])


def _ratios(result: Cost) -> list[tuple[str, ...]]:
    others = [CONTROL, *(rule for rule in result.rules if rule != BASE)]
    table: list[tuple[str, ...]] = [
        ("KV heads", "a group", "layers", "batch", f"{_title(BASE)} ms", *map(_title, others))
    ]
    places = dict.fromkeys((row.kv_heads, row.q_per_kv, row.layer, row.batch) for row in result.rows)
    by_place = {(row.rule, (row.kv_heads, row.q_per_kv, row.layer, row.batch)): row for row in result.rows}
    for place in places:
        base = by_place[BASE, place]
        cells = [_ratio(by_place[rule, place], base.launch) for rule in others]
        time = f"{base.median_ms:.3f}" if base.median_ms is not None else _status(base)
        table.append((*map(str, place), time, *cells))
    return table


def _ratio(row: CostRow, base: Launch) -> str:
    if row.status != "ran":
        return _status(row)
    if row.launch == base:
        return "="  # the same launch, and so the same measurement
    return f"{row.to_tile16:.2f}" if row.to_tile16 is not None else "-"


def _status(row: CostRow) -> str:
    return _REFUSED if row.status == "out_of_resources" else row.status


def _means(result: Cost) -> list[tuple[str, ...]]:
    groups = list(dict.fromkeys(one.group for one in result.means))
    table: list[tuple[str, ...]] = [("", *groups)]
    for rule in result.rules:
        found = {one.group: one for one in result.means if one.rule == rule}
        cells = []
        for group in groups:
            one = found.get(group)
            held = f" ({one.to_control:.2f})" if one and one.to_control is not None else ""
            cells.append(f"{one.to_tile16:.2f}{held}" if one else "-")
        table.append((_title(rule), *cells))
    counts = {one.group: one.rows for one in result.means if one.rule == BASE}
    return [*table, ("batches", *(str(counts.get(group, "-")) for group in groups))]


def _codes(result: Cost) -> list[tuple[str, ...]]:
    target = next((one.driver_target for one in result.code if one.driver_target), "the driver")
    table: list[tuple[str, ...]] = [
        (
            "layers", "phase", "a group", "launch", "bytes", "registers", "stored / loaded", "local", f"{target}",
            "local", "launched by",
        )
    ]  # fmt: skip
    return [*table, *(_code(one) for one in result.code)]


def _code(one: Code) -> tuple[str, ...]:
    def number(value: int | None) -> str:
        return f"{value:,}" if value is not None else "-"

    spilled = f"{number(one.spill_stores)} / {number(one.spill_loads)}" if one.registers is not None else "-"
    return (
        one.layer, one.phase, str(one.q_per_kv), str(one.launch), number(one.shared_bytes), number(one.registers),
        spilled, number(one.local_bytes), number(one.driver_registers), number(one.driver_local_bytes),
        ", ".join(map(_title, one.rules)),
    )  # fmt: skip


def _title(rule: str) -> str:
    return rule if rule == CONTROL else find_rule(rule).title


def _section(title: str, table: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    drawn = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([f"{title}:", *(visible(f"  {line}") for line in drawn)]) + "\n"


def _page(lines: Sequence[str]) -> str:
    wrapped = [textwrap.fill(visible(line), _WIDTH, subsequent_indent="  ", break_long_words=False) for line in lines]
    return "\n".join(wrapped) + "\n"
