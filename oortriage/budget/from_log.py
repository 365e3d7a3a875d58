"""What a vLLM log prints of its memory decision: every figure with its line, of one run, by rank where ranks differ.

The wordings by release are rules of the role fact (``rules/facts/FA1*.toml``) and the failures of
``rules/vllm/``; here their figures are only chosen among.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.log_budget import Engine
from oortriage.budget.span import Span, exactly, printed_bytes, rounded
from oortriage.evidence.event import Event

#: Printed by each worker: those of the rank with the least left for the KV cache belong together.
RANK_NAMES = frozenset(
    {
        "weights_bytes",
        "activation_peak_bytes",
        "non_torch_bytes",
        "consumed_bytes",
        "non_kv_bytes",
        "peak_torch_bytes",
        "initial_used_bytes",
        "used_after_profile_bytes",
        "free_bytes",
        "free_after_profile_bytes",
        "capacity_bytes",
        "budget_bytes",
        "cudagraph_bytes",
        "cudagraph_estimate_bytes",
        "kv_fit_bytes",
        "kv_full_bytes",
        "kv_in_use_bytes",
    }
)
#: Printed once an engine.
ENGINE_NAMES = frozenset(
    {
        "kv_tokens",
        "kv_blocks",
        "kv_blocks_profiled",
        "kv_blocks_override",
        "kv_cpu_blocks",
        "kv_concurrency",
        "kv_needed_bytes",
        "estimated_max_model_len",
        "derived_max_model_len",
        "context_parallel_size",
        "kv_padding_layers",
        "utilization_without_graphs",
        "utilization_with_graphs",
    }
)
#: Settings: a command line or an argument dump in front of the run says them for it too.
SETTING_NAMES = frozenset(
    {
        "gpu_memory_utilization",
        "kv_memory_flag_bytes",
        "max_model_len",
        "block_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "cpu_offload_gb",
    }
)
#: Settings that are words.
WORD_NAMES = frozenset(
    {
        "vllm_version",
        "model",
        "dtype",
        "kv_cache_dtype",
        "quantization",
        "attention_backend",
        "enforce_eager",
        "hybrid_kv_manager",
        "cudagraph_profiling",
    }
)
#: Names that the failure rules use for what the facts call otherwise.
_SAME = {"wanted_bytes": "budget_bytes", "utilization": "gpu_memory_utilization"}
_UNITS = {
    "kv_tokens": "tokens",
    "max_model_len": "tokens",
    "derived_max_model_len": "tokens",
    "estimated_max_model_len": "tokens",
    "max_num_batched_tokens": "tokens",
    "block_size": "tokens",
    "kv_blocks": "blocks",
    "kv_blocks_profiled": "blocks",
    "kv_blocks_override": "blocks",
    "kv_cpu_blocks": "blocks",
    "kv_concurrency": "requests",
    "max_num_seqs": "requests",
    "kv_running": "requests",
    "gpu_memory_utilization": "share",
    "utilization_without_graphs": "share",
    "utilization_with_graphs": "share",
    "kv_usage_percent": "percent",
    "tensor_parallel_size": "ranks",
    "pipeline_parallel_size": "ranks",
    "context_parallel_size": "ranks",
    "kv_padding_layers": "layers",
    "cpu_offload_gb": "GiB",
}
_QUALITY = {"exact": 2, "partial": 1, "paraphrase": 0}
#: The flag that fixes the KV memory, and the line that confirms it: no measurement.
_FLAG = "FA116"
_BANNERS = ("FA101", "FA118")
#: A dying engine writes its configuration once more (V1 core, dump_input.py): no run begins there.
_DUMP = "Dumping input data"
_KV_NAMES = frozenset({"kv_available_bytes", "kv_tokens", "kv_blocks"})


class Reading(msgspec.Struct, frozen=True):
    """One figure where a log prints it. ``span`` has the bounds of its rounding; ``sure`` 2 is the printed format."""

    name: str
    span: Span
    line: int
    stream: str
    order: int
    sure: int
    code: str


class Usage(msgspec.Struct, frozen=True):
    """What the statistics lines say: the highest share of the pool in use (percent), and by how many requests."""

    peak_percent: float
    peak_line: int
    running: int | None
    readings: int


class LogFigures(msgspec.Struct, frozen=True):
    """The figures of one run. ``ranks`` is the number of processes that print what is left for the KV cache."""

    spans: dict[str, Span]
    lines: dict[str, int]
    codes: dict[str, str]
    words: dict[str, str]
    ranks: int = 1
    usage: Usage | None = None
    #: Whether the run printed the arguments that differ from the defaults.
    arguments_printed: bool = False
    ranks_differ: tuple[str, ...] = ()

    def span(self, name: str) -> Span | None:
        """Return a figure with its bounds; None where the log does not print it."""
        return self.spans.get(name)

    def figure(self, name: str) -> Figure | None:
        """Return a figure as measured, with its line."""
        span = self.spans.get(name)
        if span is None:
            return None
        more = f", the rank with the least KV memory of {self.ranks}" if name in self.ranks_differ else ""
        bounds = {} if span.exact else {"low": span.low, "high": span.high}
        return Figure(span.value, unit_of(name), "measured", f"line {self.lines[name]}{more}", **bounds)


def unit_of(name: str) -> str:
    """Name the unit of a figure: bytes, tokens, blocks, requests, share, percent, ranks, layers."""
    return "bytes" if name.endswith("_bytes") else _UNITS.get(name, "")


def read_figures(events: Iterable[Event], *, at_order: int | None = None) -> LogFigures:
    """Choose the figures of one run from the events of a log.

    Args:
        events: all events of the log, in reading order.
        at_order: a position within the run; the log's last run where it is None.

    Returns:
        Figures of vLLM alone; empty where the log holds none.
    """
    ours = [event for event in events if event.rule.software == "vllm" and not event.mentioned]
    start, end = _run(ours, at_order)
    before = [event for event in ours if event.order < start]
    run = [event for event in ours if start <= event.order < end]
    readings = _readings(run)
    spans: dict[str, Reading] = {}
    for name in SETTING_NAMES | ENGINE_NAMES:
        found = _last(readings, name) or (_last(_readings(before), name) if name in SETTING_NAMES else None)
        if found:
            spans[name] = found
    streams = _by_rank(readings, spans)
    words = _words(before, run)
    usage = _usage(run)
    numbers = {name: [one for one in readings if one.name == name] for name in (*RANK_NAMES, "kv_available_bytes")}
    return LogFigures(
        spans={name: one.span for name, one in sorted(spans.items())},
        lines={name: one.line for name, one in spans.items()},
        codes={name: one.code for name, one in spans.items()},
        words=words,
        ranks=max(1, len(streams)),
        usage=usage,
        arguments_printed=any("non-default args" in event.line.body for event in (*before, *run)),
        ranks_differ=tuple(
            sorted(
                name
                for name, ones in numbers.items()
                if len(streams) > 1 and name in spans and len({one.span.value for one in ones}) > 1
            )
        ),
    )


def _run(events: Sequence[Event], at_order: int | None) -> tuple[int, float]:
    """Find where a run begins and ends: a banner after KV figures begins the next one."""
    starts, seen = [0], False
    for event in events:
        body = event.line.body
        begins = event.code in _BANNERS and not body.startswith(_DUMP)
        if seen and (begins or body.startswith("non-default args")):
            starts.append(event.order)
            seen = False
        elif event.code != _FLAG and _KV_NAMES.intersection(event.match.numbers):
            seen = True
    place = float("inf") if at_order is None else at_order
    chosen = max((at for at, start in enumerate(starts) if start <= place), default=0)
    return starts[chosen], starts[chosen + 1] if chosen + 1 < len(starts) else float("inf")


def _readings(events: Iterable[Event]) -> list[Reading]:
    return [reading for event in events for reading in _of(event)]


def _of(event: Event) -> Iterable[Reading]:
    for raw, value in event.match.numbers.items():
        name = _SAME.get(raw, raw)
        if name == "kv_available_bytes" and event.code == _FLAG:
            name = "kv_memory_flag_bytes"
        yield Reading(
            name,
            _span(name, float(value), event.match.pattern.captures.get(raw, "")),
            event.line.number,
            event.stream,
            event.order,
            _QUALITY[event.match.pattern.quality],
            event.code,
        )


def _span(name: str, value: float, kind: str) -> Span:
    if name.endswith("_bytes"):
        return exactly(value) if kind == "bytes" or name == "kv_memory_flag_bytes" else printed_bytes(value)
    if name == "kv_concurrency":
        return rounded(value, 2)
    if name in ("utilization_without_graphs", "utilization_with_graphs"):
        return rounded(value, 4)
    if name == "kv_usage_percent":
        return rounded(value, 1)
    return exactly(value)


def _last(readings: Sequence[Reading], name: str) -> Reading | None:
    """Return the surest reading of a name, and of those the last one."""
    ones = [one for one in readings if one.name == name]
    return max(ones, key=lambda one: (one.sure, one.order)) if ones else None


def _by_rank(readings: Sequence[Reading], spans: dict[str, Reading]) -> set[str]:
    """Add what is left for the KV cache, the least of all ranks, and that rank's other figures."""
    left = [one for one in readings if one.name == "kv_available_bytes"]
    printed = {one.stream for one in left if one.code in ("FA133", "FA134", "FA136", "FA137")}
    least = min(left, key=lambda one: (one.span.value, one.span.high - one.span.low), default=None)
    if least:
        spans["kv_available_bytes"] = least
    worker = min((one for one in left if one.stream in printed), key=lambda one: one.span.value, default=None)
    for name in RANK_NAMES:
        # A rule that is not sure reads the estimate of CUDA graphs as their size.
        ones = [one for one in readings if one.name == name and not (name == "cudagraph_bytes" and one.sure < 2)]
        own = [one for one in ones if worker and one.stream == worker.stream] or ones
        if own:
            spans[name] = max(own, key=lambda one: (one.sure, one.order))
    return printed


def _words(before: Sequence[Event], run: Sequence[Event]) -> dict[str, str]:
    found: dict[str, tuple[int, str]] = {}
    for event in (*before, *run):
        sure = _QUALITY[event.match.pattern.quality]
        for name, value in event.match.details.items():
            text = value.strip().strip("'\"`,;")
            if name in WORD_NAMES and text not in ("", "None", "null") and found.get(name, (-1, ""))[0] <= sure:
                found[name] = (sure, text)
    return {name: text for name, (_, text) in sorted(found.items())}


def _usage(run: Sequence[Event]) -> Usage | None:
    lines = [event for event in run if "kv_usage_percent" in event.match.numbers]
    if not lines:
        return None
    peak = max(lines, key=lambda event: event.match.numbers["kv_usage_percent"])
    running = peak.match.numbers.get("kv_running")
    return Usage(
        float(peak.match.numbers["kv_usage_percent"]),
        peak.line.number,
        None if running is None else int(running),
        len(lines),
    )


def engine_of(figures: LogFigures) -> Engine:
    """Tell the engine from what only one of them prints: CPU blocks and V0's memory lines, or ``Available KV``."""
    codes = set(figures.codes.values())
    if codes & {"FA132", "FA133", "FA134", "FA156", "KV103"}:
        return "V0"
    return "V1" if codes & {"FA135", "FA136", "FA137", "FA142", "FA149", "KV104"} else ""
