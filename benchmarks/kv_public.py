"""Hold what public reports print of vLLM's memory decision against the sum of their other figures.

``python benchmarks/kv_public.py`` reads ``docs/evidence/kv-public.toml`` and the engine logs in ``fixtures/runs``, and
writes ``kv-public.md`` and ``kv-public.json`` beside it. The figures go through the product as vLLM words them in that
release: rules, ``budget/from_log``, ``budget/rebuild``; where the report names the model, also ``budget/pool``. No GPU,
no network.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import msgspec

from oortriage.api import default_analyzer
from oortriage.budget.from_log import read_figures
from oortriage.budget.kv import kv_layout, pool
from oortriage.budget.log_budget import LogBudget
from oortriage.budget.model import Model, read_model
from oortriage.budget.rebuild import SWAP_SPACE, rebuild
from oortriage.budget.span import Span, exactly, rounded
from oortriage.errors import OortriageError
from oortriage.evidence.event import find_events
from oortriage.evidence.values import GIB
from oortriage.fix.engine.model import CONFIG
from oortriage.intake.line import Piece
from oortriage.intake.log import build_log

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "evidence"
#: V0 from the wording of its lines; a report whose figures both engines print is taken for the release's default.
V0_ONLY = {"cpu_blocks", "budget", "torch_peak", "refused_tokens"}


class Row(msgspec.Struct, frozen=True):
    """One printed figure beside the computed one. ``basis``: printed (every input is), model (its shape too)."""

    url: str
    what: str
    vllm: str
    stated: bool
    quantity: str
    unit: str
    printed: float
    computed: float
    low: float
    high: float
    agrees: bool
    basis: str
    how: str
    reason: str = ""

    @property
    def error(self) -> float:
        """Computed over printed, minus one; 0 where both are none."""
        return 0.0 if self.printed == self.computed else self.computed / self.printed - 1 if self.printed else math.inf


def main() -> int:
    """Write both files; end with 1 where a figure does not come out and no reason is known."""
    table = msgspec.toml.decode((FOLDER / "kv-public.toml").read_bytes())
    models = {name: read_model(config, name) for name, config in table["models"].items()}
    rows = [row for report in table["report"] for row in _rows(report, models)]
    own = [row for folder in sorted((ROOT / "fixtures" / "runs").iterdir()) for row in _own(folder)]
    seen = {report["url"] for report in table["report"]}
    (FOLDER / "kv-public.json").write_text(
        json.dumps(
            {"public": [msgspec.to_builtins(row) for row in rows], "own": [msgspec.to_builtins(row) for row in own]},
            indent=2,
        )
        + "\n",
        encoding="utf-8",
    )
    (FOLDER / "kv-public.md").write_text(_page(rows, own, len(seen)), encoding="utf-8")
    wrong = [row for row in (*rows, *own) if not row.agrees and not row.reason]
    for row in wrong:
        print(f"{row.url} {row.quantity}: printed {row.printed:,g}, computed {row.computed:,g}", file=sys.stderr)
    print(f"{sum(row.agrees for row in rows)} of {len(rows)} figures from {len(seen)} public reports; "
          f"{sum(row.agrees for row in own)} of {len(own)} from own runs")  # fmt: skip
    return 1 if wrong else 0


# ------------------------------------------------------------------------------- the product's own reader


def _budget(text: str) -> LogBudget:
    pieces = (Piece(number, 0, line) for number, line in enumerate(text.split("\n"), 1))
    log = build_log("report", pieces, complete=True, notes=[])
    return rebuild(read_figures(find_events(log, default_analyzer().matcher)))


def _lines(report: dict[str, Any]) -> str:
    """Word a report's figures as vLLM does, so that the product reads them as it reads a log."""
    p = report["printed"]
    lines = [f"INFO [core.py:76] Initializing an LLM engine (v{report['vllm']}) with config: model='m', dtype=auto"]
    if "torch_peak" in p:
        lines.append(
            f"INFO worker.py:232] Memory profiling results: total_gpu_memory={p['total']}GiB "
            f"peak_torch_memory={p['torch_peak']}GiB non_torch_memory={p['non_torch']}GiB kv_cache_size={p['left']}GiB "
            f"gpu_memory_utilization={p['share']}"
        )
    elif "budget" in p:
        lines.append(
            f"INFO worker.py:267] the current vLLM instance can use total_gpu_memory ({p['total']}GiB) x "
            f"gpu_memory_utilization ({p['share']}) = {p['budget']}GiB"
        )
        if "left" in p:
            lines.append(
                f"INFO worker.py:267] model weights take {p['weights']}GiB; non_torch_memory takes {p['non_torch']}GiB; "
                f"PyTorch activation peak memory takes {p['peak']}GiB; the rest of the memory reserved for KV Cache is "
                f"{p['left']}GiB."
            )
    elif "left" in p and "needed" not in p:
        lines.append(f"INFO [gpu_worker.py:276] Available KV cache memory: {p['left']} GiB")
    if "graphs" in p:
        lines.append(f"INFO [gpu_model_runner.py:6143] Estimated CUDA graph memory: {p['graphs']} GiB total")
        lines.append(
            f"INFO [gpu_worker.py:475] CUDA graph memory profiling is enabled (default since v0.21.0). The current "
            f"--gpu-memory-utilization={p['graph_share']} is equivalent to "
            f"--gpu-memory-utilization={p['graph_equivalent']} without CUDA graph memory profiling."
        )
    if "blocks" in p:
        cpu = f", # CPU blocks: {p['cpu_blocks']}" if "cpu_blocks" in p else ""
        lines.append(f"INFO [executor_base.py:111] # GPU blocks: {p['blocks']}{cpu}")
    if "tokens" in p:
        lines.append(f"INFO [kv_cache_utils.py:849] GPU KV cache size: {p['tokens']:,} tokens")
    if "concurrency" in p:
        lines.append(f"INFO Maximum concurrency for {p['length']:,} tokens per request: {p['concurrency']}x")
    if "refused_tokens" in p:
        lines.append(
            f"ValueError: The model's max seq len ({p['length']}) is larger than the maximum number of tokens that can "
            f"be stored in KV cache ({p['refused_tokens']}). Try increasing"
        )
    if "needed" in p:
        guess = f"Based on the available memory, the estimated maximum model length is {p.get('estimate')}. "
        lines.append(
            f"ValueError: To serve at least one request with the models's max seq len ({p['length']}), ({p['needed']} GiB "
            f"KV cache is needed, which is larger than the available KV cache memory ({p['left']} GiB). "
            f"{guess if 'estimate' in p else ''}Try increasing"
        )
    if "gate_budget" in p:
        lines.append(
            f"ValueError: Free memory on device cuda:0 ({p['free']}/{p['total']} GiB) on startup is less than desired GPU "
            f"memory utilization ({p['gate_share']}, {p['gate_budget']} GiB). Decrease GPU memory utilization"
        )
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------- rows


def _rows(report: dict[str, Any], models: dict[str, Model]) -> list[Row]:
    budget = _budget(_lines(report))
    rows = [
        _row(report, one.what, one.unit, one.printed, Span(one.computed, one.low, one.high), "printed", one.how,
             agrees=one.agrees, reason=one.why)
        for one in budget.checks
    ]  # fmt: skip
    rows += _whole_blocks(report)
    if "card" in report:
        card = budget.span("capacity_bytes")
        assert card is not None
        known = float(report["card"]) * GIB
        rows.append(
            _row(report, "memory of the card", "bytes", known, card, "estimated", "graph estimate / what it takes of the share",
                 agrees=card.low <= known <= card.high)
        )  # fmt: skip
    if "model" in report:
        rows += _by_model(report, models[report["model"]], budget)
    return rows


def _row(
    report: dict[str, Any], quantity: str, unit: str, printed: float, computed: Span, basis: str, how: str, *,
    agrees: bool, reason: str = "",
) -> Row:  # fmt: skip
    return Row(
        url=report["url"],
        what=report["what"],
        vllm=report["vllm"],
        stated=report["stated"],
        quantity=quantity,
        unit=unit,
        printed=printed,
        computed=computed.value,
        low=computed.low,
        high=computed.high,
        agrees=agrees,
        basis=basis,
        how=how,
        reason="" if agrees else report.get("reason", reason),
    )


def _whole_blocks(report: dict[str, Any]) -> list[Row]:
    """Tokens that stand alone are at least a whole number of blocks."""
    p = report["printed"]
    if "refused_tokens" not in p or "blocks" in p:
        return []
    tokens = p["refused_tokens"]
    blocks = exactly(float(round(tokens / 16) * 16))
    return [_row(report, "tokens of the pool", "tokens", tokens, blocks, "printed", "a whole number of blocks of 16",
                 agrees=blocks.value == tokens)]  # fmt: skip


def _by_model(report: dict[str, Any], model: Model, budget: LogBudget) -> list[Row]:
    """Compute blocks, tokens, one request's memory and the CPU blocks from the model's shape."""
    p = report["printed"]
    v0 = bool(V0_ONLY & set(p))
    layout = kv_layout(
        model,
        report["vllm"],
        kv_dtype=report.get("kv_dtype", "auto"),
        tp=report.get("tp", 1),
        engine="V0" if v0 else None,
    )
    block = layout.bytes_per_token.value * layout.block_size
    rows = []
    if "cpu_blocks" in p:
        held = exactly(float(SWAP_SPACE // block))
        rows.append(_row(report, "CPU blocks", "blocks", p["cpu_blocks"], held, "model", "4 GiB of swap space // block bytes",
                         agrees=held.value == p["cpu_blocks"]))  # fmt: skip
    left = budget.span("kv_available_bytes")
    length = p.get("length", 4096)
    if left and left.value > 0 and ("blocks" in p or "tokens" in p):
        held = [
            pool(layout, size, max_model_len=length, max_num_batched_tokens=2048)
            for size in (left.value, left.low, left.high)
        ]
        if "blocks" in p:
            span = Span(*(one.num_blocks.value for one in held))
            rows.append(_pool_row(report, "blocks of the pool", "blocks", p["blocks"], span))
        if "tokens" in p:
            span = Span(*(one.kv_tokens.value for one in held))
            rows.append(_pool_row(report, "tokens of the pool", "tokens", p["tokens"], span))
    if "needed" in p:
        need = pool(layout, 1.0, max_model_len=length, max_num_batched_tokens=2048).needed_bytes.value
        printed = rounded(float(p["needed"]), 2)
        rows.append(_row(report, "memory of one full request", "bytes", float(p["needed"]) * GIB, exactly(need), "model",
                         "blocks of the request x block bytes", agrees=printed.meets(exactly(need / GIB))))  # fmt: skip
    return rows


def _pool_row(report: dict[str, Any], quantity: str, unit: str, printed: float, span: Span) -> Row:
    return _row(report, quantity, unit, printed, span, "model", "printed KV memory // the model's block bytes",
                agrees=span.low <= printed <= span.high)  # fmt: skip


def _own(folder: Path) -> list[Row]:
    """Hold an own engine log against itself, and against the shape of the model it ran."""
    log = next(one for one in sorted(folder.iterdir()) if one.name != "case.toml")
    analyzer = default_analyzer()
    read = analyzer.read(log, name=folder.name)
    budget = rebuild(read_figures(find_events(read, analyzer.matcher)))
    report = {"url": f"fixtures/runs/{folder.name}", "what": "", "vllm": budget.version, "stated": True}
    if not budget.version:
        return []
    rows = [
        _row(report, one.what, one.unit, one.printed, Span(one.computed, one.low, one.high), "printed", one.how,
             agrees=one.agrees, reason=one.why)
        for one in budget.checks
    ]  # fmt: skip
    left, tokens = budget.span("kv_available_bytes"), budget.value("kv_tokens")
    length, batched = budget.value("max_model_len"), budget.value("max_num_batched_tokens")
    if not (left and left.value > 0 and tokens and length and batched):
        return rows
    try:
        layout = kv_layout(read_model(CONFIG, "the tiny Gemma 3"), budget.version, dtype="float32")
        held = [
            pool(layout, size, max_model_len=int(length), max_num_batched_tokens=int(batched))
            for size in (left.value, left.low, left.high)
        ]
    except OortriageError as problem:
        print(f"{folder.name}: {problem}", file=sys.stderr)
        return rows
    for quantity, unit, name, attribute in (
        ("tokens of the pool", "tokens", "kv_tokens", "kv_tokens"),
        ("requests of full length", "requests", "kv_concurrency", "max_concurrency"),
    ):
        printed = budget.span(name)
        assert printed is not None
        span = Span(*(getattr(one, attribute).value for one in held))
        rows.append(
            _row(report, quantity, unit, printed.value, span, "model", "printed KV memory by the model's groups of layers",
                 agrees=span.meets(printed, 1e-9))
        )  # fmt: skip
    return rows


# ------------------------------------------------------------------------------------------------- page


def _page(rows: list[Row], own: list[Row], reports: int) -> str:
    good, off = [row for row in rows if row.agrees], [row for row in rows if not row.agrees]
    same = sum(row.printed == row.computed for row in rows)
    lines = [
        "# What vLLM printed of its memory, computed again",
        "",
        f"{len(good)} of {len(rows)} printed figures of {reports} public reports come out within the rounding of their inputs",
        f"({same} of them to the last digit). {len(off)} do not; each says why. Beside them {sum(row.agrees for row in own)} of",
        f"{len(own)} figures of own engine runs on an H200.",
        "",
        "vLLM prints sizes in GiB with two decimals, so a sum of printed figures is known between two bounds; a figure",
        "agrees when it lies within them. `printed`: every input is printed in the report. `model`: the model's published",
        "shape goes in as well. `estimated`: a quotient of small rounded figures. Tokens that stand alone are held only",
        "against being whole blocks of 16, which is weak. Written by `python benchmarks/kv_public.py` from",
        "`kv-public.toml`; `kv-public.json` is the same as data. A release in brackets is not named by the report: its",
        "wording or date tells it.",
        "",
        *_table(off, "What does not come out"),
        *_table(good, "What does"),
        *_table(own, "Own runs"),
    ]
    return "\n".join(lines) + "\n"


def _table(rows: list[Row], title: str) -> list[str]:
    if not rows:
        return []
    lines = [
        f"## {title}",
        "",
        "| report | vLLM | figure | printed | computed | bounds | off by | basis | how |",
        "|---|---|---|---:|---:|---:|---:|---|---|",
    ]
    for row in rows:
        name = row.url.removeprefix("https://github.com/")
        link = f"[{name}]({row.url})" if row.url.startswith("https") else f"`{name}`"
        version = row.vllm if row.stated else f"({row.vllm})"
        bounds = "exact" if row.low == row.high else f"{_number(row.low, row.unit)} to {_number(row.high, row.unit)}"
        off = "0" if row.printed == row.computed else f"{row.error:+.2%}" if math.isfinite(row.error) else "-"
        what = f" ({row.what})" if row.what else ""
        says = "; ".join(one for one in (row.how, row.reason) if one)
        lines.append(
            f"| {link}{what} | {version} | {row.quantity} | {_number(row.printed, row.unit)} | "
            f"{_number(row.computed, row.unit)} | {bounds} | {off} | {row.basis} | {says} |"
        )
    return [*lines, ""]


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value / GIB:.3f} GiB"
    return f"{value:,.2f}x" if unit == "requests" else f"{value:,.0f}"


if __name__ == "__main__":
    sys.exit(main())
