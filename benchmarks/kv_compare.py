"""Predicts the engine starts of ``kv_starts.py`` without a card, and sets what vLLM printed beside it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from kv_settings import COMMON, GIB, HELD_OUT, MODELS
from kv_starts import read_error, read_printed

from oortriage.budget.figure import Figure
from oortriage.budget.kv import KvLayout, kv_layout, pool
from oortriage.budget.longest import longest_request
from oortriage.budget.memory import Available, available_for_kv
from oortriage.budget.model import Model, read_model
from oortriage.budget.profile import activation_peak
from oortriage.budget.scheduler import scheduler_defaults
from oortriage.budget.sums import high, low
from oortriage.budget.weights import weight_bytes

VERSION, CARD = "0.22.1", "NVIDIA H200"
#: The error of the tokens that is allowed, a share.
ALLOWED = 0.02


def compare(results: list[Path], out: Path) -> int:
    """Write ``kv-starts.json`` and ``kv-starts.md``; 1 where a prediction is further off than allowed."""
    measured: list[dict[str, Any]] = []
    for path in results:
        found = json.loads(path.read_text(encoding="utf-8"))["results"]
        _read_again(found, path.with_name("logs.tar.gz"))
        measured += found
    totals = [one["noted"]["worker"]["total"] for one in measured if "worker" in one["noted"]]
    rows = [_row(one, max(totals)) for one in measured]
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"vllm": VERSION, "card": CARD, "total_bytes": max(totals), "rows": rows}, indent=1)
    (out / "kv-starts.json").write_text(text + "\n", encoding="utf-8")
    (out / "kv-starts.md").write_text(_page(rows, max(totals)), encoding="utf-8")
    wrong = [row["setting"] for row in rows if not row["agrees"]]
    print("disagree:", wrong or "none")
    return 1 if wrong else 0


def _read_again(measured: list[dict[str, Any]], logs: Path) -> None:
    """Read figures and errors from the logs where they are there: they are the evidence."""
    if not logs.is_file():
        return
    with tarfile.open(logs) as packed:
        for one in measured:
            held = packed.extractfile(f"logs/{one['setting']}.log")
            if held is not None:
                text = held.read().decode("utf-8", "replace")
                one["printed"], one["error"] = read_printed(text), read_error(text) if one["exit_code"] else ""


def _row(measured: dict[str, Any], total: int) -> dict[str, Any]:
    model, arguments = read_model(MODELS[measured["model"]]), measured["arguments"]
    printed, noted = measured["printed"], measured["noted"]
    length = arguments.get("max_model_len") or model.max_position_embeddings
    step = scheduler_defaults(
        VERSION,
        total_bytes=total,
        card=CARD,
        usage="llm",
        max_model_len=length,
        max_num_seqs=arguments.get("max_num_seqs"),
        max_num_batched_tokens=arguments.get("max_num_batched_tokens"),
    )
    tokens, seqs = int(step.max_num_batched_tokens.value), int(step.max_num_seqs.value)
    left = _left(model, arguments, total, printed, tokens, seqs)
    layout = kv_layout(
        model,
        VERSION,
        dtype=arguments.get("dtype", "auto"),
        kv_dtype=arguments.get("kv_cache_dtype", "auto"),
        block_size=arguments.get("block_size"),
        hybrid=not arguments.get("disable_hybrid_kv_cache_manager", False),
        attention_backend=arguments.get("attention_backend", COMMON["attention_backend"]),
    )
    worker = noted.get("worker", {})
    predicted = _held(layout, left.available, length, tokens, arguments)
    plain = _left(model, arguments, total, printed, tokens, seqs, plain=True).available
    bounds = [
        _held(layout, Figure(edge, "bytes", "estimated"), length, tokens, arguments)
        for edge in (low(plain), high(plain))
    ]
    row: dict[str, Any] = {
        "setting": measured["setting"],
        "held_out": measured["setting"] in {one[0] for one in HELD_OUT},
        "model": measured["model"],
        "arguments": arguments,
        "max_model_len": length,
        "max_num_batched_tokens": tokens,
        "max_num_seqs": seqs,
        "predicted": {
            **predicted,
            "outcome": _outcome(left, predicted),
            "requested_bytes": left.requested.value,
            "weights_bytes": left.weights.value,
            "activation_bytes": left.activation.value,
            "non_torch_bytes": left.non_torch.value,
            "available_bytes": left.available.value,
        },
        "range": {"kv_tokens": [one["kv_tokens"] for one in bounds], "available_bytes": [low(plain), high(plain)]},
        "printed": printed,
        "measured_bytes": worker,
        "measured_blocks": noted.get("blocks"),
        "error_line": measured["error"],
        "outcome": _happened(measured),
    }
    if "available_gib" in printed:
        near = Figure(printed["available_gib"] * GIB, "bytes", "measured")
        row["from_printed_available"] = _held(layout, near, length, tokens, arguments)
    if worker.get("available"):
        exact = Figure(worker["available"], "bytes", "measured")
        row["from_bytes"] = _held(layout, exact, length, tokens, arguments)
    _judge(row)
    return row


def _left(
    model: Model,
    arguments: dict[str, Any],
    total: int,
    printed: dict[str, float],
    tokens: int,
    seqs: int,
    *,
    plain: bool = False,
) -> Available:
    """Work out what is left from the model, the card's size and the settings.

    ``plain``: as without knowing that the operators are PyTorch's and FlashInfer is off.

    The free memory at start, which only the start gate needs, is the one figure taken from the log.
    """
    dtype = arguments.get("dtype", "auto")
    peak = activation_peak(
        model,
        version=VERSION,
        dtype=dtype,
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        eager=True,
        sampler=None if plain else "triton",
        native=not plain,
    ).figure
    free = printed.get("gate_free_gib") or printed.get("free_at_start_gib")
    return available_for_kv(
        version=VERSION,
        total=Figure(total, "bytes", "given", CARD),
        weights=weight_bytes(model, dtype=dtype),
        activation=peak,
        utilization=arguments.get("gpu_memory_utilization"),
        free=Figure(free * GIB, "bytes", "measured") if free else None,
        kv_cache_memory=arguments.get("kv_cache_memory_bytes"),
    )


def _held(layout: KvLayout, available: Figure, length: int, tokens: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Say what so many bytes hold; a figure's own value counts, not its range."""
    size = available.value
    override = arguments.get("num_gpu_blocks_override")
    found = pool(layout, size, max_model_len=length, max_num_batched_tokens=tokens, blocks_override=override)
    return {
        "blocks": found.num_blocks.value,
        "kv_tokens": found.kv_tokens.value,
        "concurrency": round(found.max_concurrency.value, 2),
        "admitted": found.admitted,
        "longest_admitted": _longest_admitted(layout, size, length, tokens),
        "longest_served": longest_request(layout, max(size, 0), ceiling=length, max_num_batched_tokens=tokens),
    }


def _longest_admitted(layout: KvLayout, size: float, length: int, tokens: int) -> int:
    """Find the longest request that the start check lets through: what vLLM prints as its estimate."""
    least, most = 0, length
    while least < most:
        middle = (least + most + 1) // 2
        if pool(layout, size, max_model_len=middle, max_num_batched_tokens=tokens).admitted:
            least = middle
        else:
            most = middle - 1
    return least


def _outcome(left: Available, held: dict[str, Any]) -> str:
    if left.gate is not None and not left.gate.passes:
        return "start gate"
    if held["blocks"] <= 0:
        return "no blocks"
    return "starts" if held["admitted"] else "too long"


def _happened(measured: dict[str, Any]) -> str:
    text = measured["error"]
    for words, name in (("Free memory on device", "start gate"), ("No available memory", "no blocks")):
        if words in text:
            return name
    if "needed_gib" in measured["printed"]:
        return "too long"
    # a kernel that is not in the trimmed copy of vLLM, after the KV cache was sized
    return "starts" if "kv_tokens" in measured["printed"] else "failed for another reason"


def _judge(row: dict[str, Any]) -> None:
    """Set the errors, shares of what vLLM printed, and whether all is within what is allowed."""
    printed, predicted = row["printed"], row["predicted"]
    row["agrees"] = row["outcome"] in (predicted["outcome"], "failed for another reason")
    if "kv_tokens" in printed:
        row["error"] = predicted["kv_tokens"] / printed["kv_tokens"] - 1
        row["agrees"] &= abs(row["error"]) <= ALLOWED
        if "from_bytes" in row:
            row["exact"] = row["from_bytes"]["kv_tokens"] == printed["kv_tokens"]
            row["agrees"] &= row["exact"]
        lowest, highest = row["range"]["kv_tokens"]
        row["in_range"] = lowest <= printed["kv_tokens"] <= highest
        row["agrees"] &= row["in_range"]
    if "estimated_max_len" in printed:
        row["error"] = predicted["longest_admitted"] / printed["estimated_max_len"] - 1
        row["agrees"] &= abs(row["error"]) <= ALLOWED
        row["exact"] = row["from_bytes"]["longest_admitted"] == printed["estimated_max_len"]
        row["agrees"] &= row["exact"]


def _page(rows: list[dict[str, Any]], total: int) -> str:
    judged = [row for row in rows if "error" in row]
    held = [row for row in judged if row["held_out"]]
    worst = max(judged, key=lambda row: abs(row["error"]))
    refused = [row for row in rows if row["outcome"] in ("start gate", "no blocks", "too long")]
    lines = [
        "# The KV cache of real engine starts, predicted and printed",
        "",
        f"vLLM {VERSION}, unmodified, dummy weights, eager, one {CARD} ({total:,} bytes), torch 2.11.0+cu130, Triton 3.6.0.",
        "Each row is one engine in a process of its own, started by `benchmarks/kv_starts.py measure`; its `compare` mode",
        "wrote this page and `kv-starts.json`, which has every figure in bytes.",
        "",
        "*Predicted* is worked out from the model's `config.json`, the card's memory and the settings alone: weights, the",
        "profile run's peak, memory outside torch, layout, blocks. *From printed GiB* starts at the line",
        "`Available KV cache memory`, which is rounded to 0.01 GiB; *from bytes* at the same figure unrounded, which the",
        "started process noted beside its log. *Range* is what `oortriage budget` says without being told that the operators",
        "are PyTorch's and FlashInfer's sampler is off.",
        "",
        f"- {len(judged)} starts printed a size: the largest error of the prediction is {abs(worst['error']):.2%} "
        f"({worst['setting']}).",
        f"- From the unrounded bytes {sum(bool(row.get('exact')) for row in judged)} of {len(judged)} are right to the token.",
        f"- {sum(bool(row.get('in_range')) for row in rows)} of {sum('in_range' in row for row in rows)} printed sizes lie in "
        "the range.",
        f"- {len(refused)} starts were refused before any request; "
        f"{sum(row['outcome'] == row['predicted']['outcome'] for row in refused)} of them were predicted, by the same check.",
        *(
            f"- {row['setting']} failed before any size was printed (a kernel that this trimmed copy of vLLM lacks), and "
            "is no evidence: " + row["error_line"][:100].replace("|", "/")
            for row in rows
            if row["outcome"] == "failed for another reason"
        ),
        *(
            [
                f"- {len(held)} starts were chosen after every constant was fixed, of models and sizes that none was learnt",
                f"  from (`measure --held-out`): the largest error among them is {max(abs(row['error']) for row in held):.2%}.",
            ]
            if held
            else []
        ),
        "",
        "What was learnt from the other starts, so that they are no prediction in the strict sense: memory outside torch (0.22 GiB",
        "in every start), cuBLAS' work space of 32 MiB, 3 or 4 hidden states beside an MLP's matrices, and three float32",
        "matrices in the sampler. Weights, layouts and scheduler defaults were there before. The operators were plain",
        "PyTorch (`custom_ops: none`) and FlashInfer's sampler was off; with vLLM's own kernels, compiled, or in another",
        "release the peak is another, and `oortriage budget` gives it a range.",
        "",
        _heavier(rows),
        "",
        "## Tokens",
        "",
        "| setting | arguments | predicted | range | from printed GiB | from bytes | printed | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if "kv_tokens" not in row["printed"]:
            continue
        told = [row["predicted"], row.get("from_printed_available"), row.get("from_bytes")]
        cells = [f"{one['kv_tokens']:,.0f}" if one else "-" for one in told]
        cells.insert(1, " to ".join(f"{edge:,.0f}" for edge in row["range"]["kv_tokens"]))
        lines.append(
            f"| {row['setting']} | {_told(row)} | {' | '.join(cells)} | {row['printed']['kv_tokens']:,.0f} | {row['error']:+.2%} |"
        )
    lines += [
        "",
        "## Refused",
        "",
        "*Longest* is the estimated maximum model length that the error names. An engine started with it has one block too",
        "few for a request of that length, for one block of the pool stands for nothing (the null block): the longest that",
        "is served is one block shorter.",
        "",
        "| setting | arguments | predicted | happened | longest: predicted | from bytes | printed | served |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in refused:
        found = row["printed"].get("estimated_max_len")
        longest = "- | - | - | -"
        if found:
            exact = row["from_bytes"]
            longest = f"{row['predicted']['longest_admitted']:,} | {exact['longest_admitted']:,} | {found:,.0f}"
            longest += f" | {exact['longest_served']:,}"
        lines.append(
            f"| {row['setting']} | {_told(row)} | {row['predicted']['outcome']} | {row['outcome']} | {longest} |"
        )
    lines += [
        "",
        "## Where the memory went",
        "",
        "GiB, predicted / measured in the process.",
        "",
        "| setting | requested | weights | profile peak | outside torch | available |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        found = row["measured_bytes"]
        if not found.get("activation"):
            continue
        names = ("requested", "weights", "activation", "non_torch", "available")
        cells = [f"{row['predicted'][f'{name}_bytes'] / GIB:.3f} / {found[name] / GIB:.3f}" for name in names]
        lines.append(f"| {row['setting']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _heavier(rows: list[dict[str, Any]]) -> str:
    """Say how much more the weights took than was computed; a part of it is torch's rounding of large tensors."""
    more = [
        (row["measured_bytes"]["weights"] - row["predicted"]["weights_bytes"], row)
        for row in rows
        if row["measured_bytes"].get("weights")
    ]
    most, row = max(more, key=lambda one: one[0] / one[1]["measured_bytes"]["weights"])
    return (
        f"Weights took {min(one[0] for one in more) / 2**20:.2f} to {max(one[0] for one in more) / 2**20:.0f} MiB more than "
        f"computed, at most {most / row['measured_bytes']['weights']:.1%} ({row['setting']}): torch hands out large tensors "
        "in whole pieces of 2 MiB, which explains a part of it and not all."
    )


def _told(row: dict[str, Any]) -> str:
    said = ", ".join(
        f"{name.replace('gpu_memory_utilization', 'util')} {value}" for name, value in row["arguments"].items()
    )
    return f"{row['model']}; {said or 'all defaults'}"
