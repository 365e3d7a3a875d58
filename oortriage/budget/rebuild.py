"""The memory decision put together again from what a log prints, and the log held against its own sums.

Sources of the sums: vLLM's ``worker/worker.py`` (V0), ``v1/worker/gpu_worker.py``, ``utils/mem_utils.py`` and
``v1/core/kv_cache_utils.py`` in the releases that each function names.
"""

from __future__ import annotations

import math

import msgspec

from oortriage.budget.figure import Figure, Provenance
from oortriage.budget.from_log import LogFigures, engine_of, unit_of
from oortriage.budget.log_budget import Check, LogBudget
from oortriage.budget.log_parts import parts_of, use_of
from oortriage.budget.releases import before, since
from oortriage.budget.span import Span, exactly, whole
from oortriage.budget.versions import GRAPHS_CHARGED_SINCE, TOKENS_SERVED, TOKENS_SHARE
from oortriage.evidence.values import GIB

#: V0's swap space when nobody set one, by which it divides to get its CPU blocks (config.py, 0.5.4 to 0.10.2).
SWAP_SPACE = 4 * GIB
#: What the engine leaves over in its own advice (v1/worker/gpu_worker.py, ``redundancy_buffer_memory``).
SPARE = 150 * 2**20


class _Sheet:
    """Figures while they are being worked out: printed ones first, then what follows from them."""

    def __init__(self, read: LogFigures) -> None:
        self.read = read
        self.version = read.words.get("vllm_version", "")
        self.engine = engine_of(read)
        self.spans = dict(read.spans)
        self.figures = {name: figure for name in read.spans if (figure := read.figure(name))}
        self.checks: list[Check] = []
        self.notes: list[str] = []

    def has(self, *names: str) -> bool:
        return all(name in self.spans for name in names)

    def derive(self, name: str, span: Span, how: str, unit: str = "", provenance: Provenance = "derived") -> None:
        if name in self.spans or not math.isfinite(span.value):
            return
        bounds = {} if span.exact else {"low": span.low, "high": span.high}
        self.spans[name] = span
        self.figures[name] = Figure(span.value, unit or unit_of(name), provenance, how, **bounds)

    def check(self, what: str, name: str, computed: Span, how: str, why: str = "") -> bool:
        """Hold a printed figure against a sum; ``why`` is told only where they differ."""
        printed = self.read.spans[name]
        unit = unit_of(name)
        slack = 1.0 if unit in ("bytes", "tokens", "blocks") else 1e-9
        agrees = printed.meets(computed, slack)
        self.checks.append(
            Check(
                what,
                unit,
                printed.value,
                computed.value,
                computed.low,
                computed.high,
                agrees,
                how,
                "" if agrees else why,
                self.read.lines[name],
            )
        )
        return agrees


def rebuild(read: LogFigures) -> LogBudget:
    """Put the budget of one run together.

    Returns:
        What could be read and worked out; an empty ``figures`` where the log prints nothing of it.
    """
    sheet = _Sheet(read)
    _share(sheet)
    _left(sheet)
    _pool(sheet)
    _requests(sheet)
    counted = graphs_count(sheet.version, read)
    return LogBudget(
        version=sheet.version,
        engine=sheet.engine,
        figures=dict(sorted(sheet.figures.items())),
        words=read.words,
        graphs_counted=counted,
        parts=parts_of(sheet.figures, read, counted=counted and not graphs_in_peak(sheet.version, read)),
        checks=tuple(sheet.checks),
        use=use_of(sheet.figures, read),
        notes=tuple(sheet.notes),
    )


def _share(sheet: _Sheet) -> None:
    """Total times utilisation is what the engine may take (``requested_memory``; V0 the same product)."""
    spans = sheet.spans
    if "kv_memory_flag_bytes" in spans:
        sheet.notes.append("--kv-cache-memory-bytes sets the KV cache: the utilisation plays no part in its size")
    if sheet.has("capacity_bytes", "gpu_memory_utilization"):
        product = spans["capacity_bytes"] * _printed_share(sheet)
        how = "total memory x gpu_memory_utilization"
        if "budget_bytes" in spans:
            sheet.check("the engine's share of the card", "budget_bytes", product, how)
        sheet.derive("budget_bytes", product, how)
    elif sheet.has("budget_bytes", "gpu_memory_utilization") and spans["gpu_memory_utilization"].value > 0:
        sheet.derive(
            "capacity_bytes",
            spans["budget_bytes"] / spans["gpu_memory_utilization"],
            "the share / gpu_memory_utilization",
        )
    _card_from_graphs(sheet)


def _printed_share(sheet: _Sheet) -> Span:
    """V0 prints the utilisation with two decimals, so 0.945 reads 0.94 or 0.95; elsewhere it is printed in full."""
    span = sheet.spans["gpu_memory_utilization"]
    if sheet.read.codes.get("gpu_memory_utilization") in ("FA132", "FA134"):
        return Span(span.value, span.value - 0.005, span.value + 0.005)
    return span


def _card_from_graphs(sheet: _Sheet) -> None:
    """0.18.0 and later print by how much of the card the graphs' estimate changes the utilisation."""
    spans = sheet.spans
    if "capacity_bytes" in spans or not sheet.has("gpu_memory_utilization", "cudagraph_estimate_bytes"):
        return
    if "utilization_without_graphs" in spans:
        share = spans["gpu_memory_utilization"] - spans["utilization_without_graphs"]
    elif "utilization_with_graphs" in spans:
        share = spans["utilization_with_graphs"] - spans["gpu_memory_utilization"]
    else:
        return
    if share.low <= 0:
        return
    total = sheet.spans["cudagraph_estimate_bytes"] / share
    if total.high - total.low > 0.2 * total.value:
        return
    how = "graph estimate / what it takes of the utilisation, both rounded"
    sheet.derive("capacity_bytes", total, how, provenance="estimated")
    sheet.derive(
        "budget_bytes", total * sheet.spans["gpu_memory_utilization"], "total memory x gpu_memory_utilization",
        provenance="estimated",
    )  # fmt: skip


def graphs_count(version: str, read: LogFigures) -> bool | None:
    """Tell whether the estimate of CUDA graphs was taken off the KV cache; None where that is unknown."""
    said = read.words.get("cudagraph_profiling", "")
    if said:
        return said == "enabled"
    if "utilization_without_graphs" in read.spans:
        return True
    return None if not version else since(version, GRAPHS_CHARGED_SINCE.since)


def graphs_in_peak(version: str, read: LogFigures) -> bool:
    """Tell whether the printed activation peak holds the estimate of CUDA graphs.

    The bill after start-up ("Actual usage is ...") adds it in 0.18.0 and from 0.28.0 on (v1/worker/gpu_worker.py,
    ``peak_activation_memory``); the line of the profile run never does.
    """
    if read.codes.get("activation_peak_bytes") != "FA142" or not graphs_count(version, read):
        return False
    return since(version, "0.28.0") or (since(version, "0.18.0") and before(version, "0.18.1"))


def _left(sheet: _Sheet) -> None:
    """The share minus all that is not KV cache, by the sum that the release uses."""
    spans, read = sheet.spans, sheet.read
    terms: list[tuple[str, str]]
    if "FA134" in read.codes.values() and sheet.has("peak_torch_bytes", "non_torch_bytes"):
        # 0.6.4: peak = torch's peak + (used on the card - torch's own); others' memory is in it.
        terms = [("peak_torch_bytes", "torch peak"), ("non_torch_bytes", "non-torch")]
    elif "consumed_bytes" in spans:
        terms = [("consumed_bytes", "consumed (weights and non-torch)"), ("activation_peak_bytes", "activation peak")]
    else:
        terms = [
            ("weights_bytes", "weights"),
            ("non_torch_bytes", "non-torch"),
            ("activation_peak_bytes", "activation peak"),
        ]
    counted = graphs_count(sheet.version, read)
    if counted and "cudagraph_estimate_bytes" in spans and not graphs_in_peak(sheet.version, read):
        terms.append(("cudagraph_estimate_bytes", "CUDA graphs, estimated"))
    known = [(name, words) for name, words in terms if name in spans]
    if not sheet.has("budget_bytes"):
        return
    rest = spans["budget_bytes"]
    for name, _ in known:
        rest = rest - spans[name]
    how = " - ".join(["the share", *(words for _, words in known)])
    if len(known) == len(terms):
        if "kv_available_bytes" in read.spans and "kv_memory_flag_bytes" not in spans:
            sheet.check("left for the KV cache", "kv_available_bytes", rest, how, _why_left(sheet))
        sheet.derive("kv_available_bytes", rest, how)
        _advised(sheet)
    elif "kv_available_bytes" in spans and "kv_memory_flag_bytes" not in spans:
        unknown = ", ".join(words for name, words in terms if name not in spans)
        sheet.derive("unprinted_bytes", rest - spans["kv_available_bytes"], f"{how} - KV cache: {unknown}", "bytes")


def _advised(sheet: _Sheet) -> None:
    """The engine's own advice: what it used, the captured graphs and 150 MiB to spare taken off the share, in bytes."""
    if not sheet.has("kv_fit_bytes", "activation_peak_bytes", "cudagraph_bytes", "budget_bytes"):
        return
    if sheet.read.codes.get("activation_peak_bytes") != "FA142":
        return
    taken = ("consumed_bytes",) if sheet.has("consumed_bytes") else ("weights_bytes", "non_torch_bytes")
    if not sheet.has(*taken):
        return
    rest = sheet.spans["budget_bytes"] - exactly(SPARE)
    for name in (*taken, "activation_peak_bytes", "cudagraph_bytes"):
        rest = rest - sheet.spans[name]
    how = "the share - all that was used - CUDA graphs, captured - 150 MiB"
    sheet.check("KV memory that fits the share, by the engine", "kv_fit_bytes", rest, how)


def _why_left(sheet: _Sheet) -> str:
    if sheet.engine == "V1" and since(sheet.version, "0.25.0"):
        return "0.25.1 and later also take off what is reserved for decoding images on the card"
    if "cudagraph_estimate_bytes" in sheet.spans and graphs_count(sheet.version, sheet.read) is None:
        return "whether the estimate of CUDA graphs is taken off depends on the release, which the log does not name"
    return "a term of the sum is not printed, or figures of different ranks stand in one log"


def _pool(sheet: _Sheet) -> None:
    """Blocks, tokens and bytes a token."""
    spans, read = sheet.spans, sheet.read
    if "kv_memory_flag_bytes" in spans:
        sheet.spans["kv_available_bytes"] = spans["kv_memory_flag_bytes"]
        flag = sheet.figures["kv_memory_flag_bytes"]
        sheet.figures["kv_available_bytes"] = msgspec.structs.replace(flag, how=f"{flag.how}: set by the flag")
    if "kv_blocks_profiled" in spans and spans["kv_blocks_profiled"].value == 0:
        # 0.18 and later measure the CUDA graphs with a small pool of their own; that line is not the user's flag.
        for name in ("kv_blocks_override", "kv_blocks_profiled"):
            spans.pop(name, None)
            sheet.figures.pop(name, None)
    if "kv_blocks_override" in spans:
        sheet.figures["kv_blocks"] = sheet.figures["kv_blocks_override"]
        spans["kv_blocks"] = spans["kv_blocks_override"]
    _tokens(sheet)
    if (
        sheet.has("kv_available_bytes", "kv_tokens")
        and spans["kv_tokens"].low > 0
        and "kv_blocks_override" not in spans
    ):
        available = spans["kv_available_bytes"]
        # The last block is cut off, so a token may take a block's worth less than this says.
        block = spans["block_size"].value if "block_size" in spans else 16.0
        tokens = spans["kv_tokens"]
        parallel = _context_ranks(sheet)
        each = Span(
            available.value * parallel.value / tokens.value,
            available.low * parallel.value / (tokens.value + block * parallel.value),
            available.high * parallel.value / tokens.value,
        )
        if available.low > 0:
            sheet.derive("kv_bytes_per_token", each, "KV memory / tokens, on one rank", "bytes")
    if sheet.has("kv_needed_bytes", "max_model_len") and spans["max_model_len"].low > 0:
        each = spans["kv_needed_bytes"] / spans["max_model_len"]
        sheet.derive("kv_bytes_per_token", each, "KV memory for one request / its length, on one rank", "bytes")
    _swap_blocks(sheet)
    if sheet.has("kv_padding_layers"):
        sheet.notes.append("the last group of layers is padded: part of the pool holds nothing")
    if read.words.get("hybrid_kv_manager") in ("off", "disabled"):
        sheet.notes.append("the hybrid KV cache manager is off: layers with a window take as much as the others")


def _context_ranks(sheet: _Sheet) -> Span:
    printed = sheet.spans.get("context_parallel_size")
    return printed if printed is not None and printed.low >= 1 else exactly(1.0)


def _tokens(sheet: _Sheet) -> None:
    spans = sheet.spans
    if not sheet.has("kv_blocks"):
        return
    if sheet.has("kv_tokens") and spans["kv_blocks"].low > 0:
        parallel = _context_ranks(sheet)
        if sheet.has("block_size"):
            product = spans["kv_blocks"] * spans["block_size"] * parallel
            sheet.check("tokens of the pool", "kv_tokens", product, "blocks x block size", _why_tokens(sheet))
        else:
            sheet.derive(
                "block_size", spans["kv_tokens"] / (spans["kv_blocks"] * parallel), "tokens / blocks", "tokens"
            )
    elif "kv_tokens" not in spans:
        if not sheet.has("block_size") and sheet.engine == "V0":
            sheet.derive("block_size", exactly(16.0), "the default of V0", "tokens", "estimated")
        if sheet.has("block_size"):
            guess = sheet.figures["block_size"].provenance == "estimated"
            sheet.derive(
                "kv_tokens", spans["kv_blocks"] * spans["block_size"], "blocks x block size", "tokens",
                "estimated" if guess else "derived",
            )  # fmt: skip


def _why_tokens(sheet: _Sheet) -> str:
    version = sheet.version
    if since(version, TOKENS_SERVED.since):
        return f"{TOKENS_SERVED.since} and later print concurrency x max_model_len as tokens"
    if since(version, TOKENS_SHARE.since):
        return "0.9.2 to 0.20.0 print blocks // groups x block size for a model with several kinds of layers"
    return "the block size printed is not the one in use"


def _swap_blocks(sheet: _Sheet) -> None:
    """V0 prints how many blocks its swap space holds: that space over it is the size of a block."""
    spans, read = sheet.spans, sheet.read
    if not sheet.has("kv_cpu_blocks") or spans["kv_cpu_blocks"].low <= 0:
        return
    blocks = spans["kv_cpu_blocks"].value
    block = Span(SWAP_SPACE / blocks, SWAP_SPACE / (blocks + 1), SWAP_SPACE / blocks)
    how = "swap space (4 GiB unless set) / CPU blocks"
    sheet.derive("kv_block_bytes", block, how, "bytes", "estimated")
    if not {"kv_available_bytes", "kv_blocks"} <= set(read.spans) or "kv_blocks_override" in spans:
        return
    if spans["kv_available_bytes"].high <= 0:
        sheet.check("blocks of the pool", "kv_blocks", exactly(0.0), "nothing is left for the KV cache: no block")
        return
    held = whole(spans["kv_available_bytes"] / block)
    why = "the swap space was set, or another rank has less memory: the fewest blocks of all ranks count"
    sheet.check("blocks of the pool", "kv_blocks", held, "KV memory // block bytes by the CPU blocks", why)


def _requests(sheet: _Sheet) -> None:
    """Concurrency and lengths."""
    spans, read = sheet.spans, sheet.read
    if sheet.has("kv_tokens", "max_model_len") and spans["max_model_len"].low > 0:
        length, tokens = spans["max_model_len"].value, spans["kv_tokens"].value
        block = max(1.0, spans["block_size"].value if "block_size" in spans else 16.0)
        # V1 counts whole blocks a request; V0 divides tokens.
        padded = math.ceil(length / block) * block
        low = tokens / (padded if sheet.engine != "V0" else length)
        ratio = Span(tokens / length, min(low, tokens / length), tokens / length)
        if since(sheet.version, TOKENS_SERVED.since):
            ratio = Span(ratio.value, ratio.low, (tokens + 1) / length)
        if "kv_concurrency" in read.spans and "kv_tokens" in sheet.spans:
            agrees = sheet.check(
                "requests of full length", "kv_concurrency", ratio, "tokens / max_model_len", _why_concurrency(sheet)
            )
            if not agrees and spans["kv_concurrency"].value > ratio.high:
                true = spans["kv_concurrency"] * exactly(length)
                sheet.derive("kv_tokens_by_concurrency", true, "concurrency x max_model_len", "tokens")
        sheet.derive("kv_concurrency", ratio, "tokens / max_model_len", "requests")
    if sheet.has("kv_needed_bytes", "kv_available_bytes", "max_model_len") and spans["kv_needed_bytes"].low > 0:
        sheet.derive(
            "kv_concurrency", spans["kv_available_bytes"] / spans["kv_needed_bytes"],
            "KV memory / that of one full request", "requests",
        )  # fmt: skip
        if "estimated_max_model_len" in read.spans:
            # By halving, in steps of whole blocks: 16 tokens and more below the exact quotient are right.
            fits = spans["max_model_len"] * spans["kv_available_bytes"] / spans["kv_needed_bytes"]
            slack = max(64.0, 0.002 * fits.value)
            span = Span(fits.value, fits.low - slack, fits.high + slack)
            sheet.check(
                "the estimated length", "estimated_max_model_len", span, "length x KV memory / memory for one request",
                "the model has layers with a window: they take the same for a longer request, so more would fit",
            )  # fmt: skip


def _why_concurrency(sheet: _Sheet) -> str:
    printed, tokens = sheet.spans["kv_concurrency"].value, sheet.spans["kv_tokens"].value
    more = printed * sheet.spans["max_model_len"].value > tokens
    known = sheet.version
    if more and (not known or (since(known, TOKENS_SHARE.since) and not since(known, "0.20.1"))):
        return "a model with several kinds of layers: 0.9.2 to 0.20.0 print blocks // groups x block size as tokens"
    if not more and sheet.read.spans.get("context_parallel_size"):
        return "the tokens are those of all context-parallel ranks"
    if sheet.version and before(sheet.version, "0.9.2"):
        return "with pipeline parallelism the blocks are divided among the stages"
    return "the two lines may belong to different engines of one log"
