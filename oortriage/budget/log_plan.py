"""A log's figures put over a model's shape: the layout by the log's own settings, and the log held against it."""

from __future__ import annotations

from oortriage.budget.figure import Figure
from oortriage.budget.kv import Engine, pool
from oortriage.budget.log_budget import Check, LogBudget
from oortriage.budget.model import Model
from oortriage.budget.plan import Planned, Settings, prepare
from oortriage.budget.span import Span
from oortriage.errors import UsageError

#: vLLM's other names of the types.
_TYPES = {"half": "float16", "float": "float32", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def planned_from_log(model: Model, found: LogBudget, version: str = "") -> Planned:
    """Lay the cache out by what the log says of the settings; what it does not say is the release's own choice.

    Args:
        model: the model that ran.
        found: the log's budget.
        version: the release, where the log does not name it.

    Raises:
        UsageError: no release anywhere, or settings that it does not take.
        UnknownLayoutError: the config does not tell how the cache is laid out.
    """
    release = found.version or version
    if not release:
        raise UsageError("the log does not name vLLM's release: add --vllm 0.17.1")
    words = found.words
    dtype = words.get("dtype", "auto").removeprefix("torch.")
    block = found.figures.get("block_size")
    engine: Engine | None = found.engine or None
    total = found.value("capacity_bytes")
    return prepare(
        model,
        Settings(
            version=release,
            dtype=_TYPES.get(dtype, dtype),
            kv_dtype=words.get("kv_cache_dtype", "auto"),
            block_size=int(block.value) if block and block.provenance == "measured" else None,
            max_model_len=_count(found, "max_model_len"),
            max_num_batched_tokens=_count(found, "max_num_batched_tokens"),
            max_num_seqs=_count(found, "max_num_seqs"),
            tp=_count(found, "tensor_parallel_size") or 1,
            pp=_count(found, "pipeline_parallel_size") or 1,
            hybrid="hybrid_kv_manager" not in words,
            engine=engine,
            attention_backend=words.get("attention_backend", ""),
            blocks_override=_count(found, "kv_blocks_override"),
            total_bytes=total,
        ),
    )


def kv_memory_of(found: LogBudget) -> Figure:
    """Return what the log leaves for the KV cache, bytes on one rank.

    Raises:
        UsageError: the log does not print it.
    """
    figure = found.figures.get("kv_available_bytes")
    if figure is None:
        raise UsageError("the log does not print what is left for the KV cache (`Available KV cache memory: ... GiB`)")
    return figure


def checks_by_shape(found: LogBudget, planned: Planned) -> tuple[Check, ...]:
    """Hold what the log prints of the pool against what the model's shape gives for the printed memory."""
    left = found.figures.get("kv_available_bytes")
    if left is None or left.value <= 0:
        return ()
    held = pool(
        planned.layout,
        left,
        max_model_len=planned.max_model_len,
        max_num_batched_tokens=int(planned.max_num_batched_tokens.value),
        blocks_override=planned.settings.blocks_override,
    )
    checks = []
    for what, name, figure in (
        ("blocks of the pool, by the model's shape", "kv_blocks", held.num_blocks),
        ("tokens of the pool, by the model's shape", "kv_tokens", held.kv_tokens),
        ("requests of full length, by the model's shape", "kv_concurrency", held.max_concurrency),
        ("KV memory for one full request, by the model's shape", "kv_needed_bytes", held.needed_bytes),
    ):
        printed = found.figures.get(name)
        if printed is None or printed.provenance != "measured":
            continue
        low = figure.value if figure.low is None else figure.low
        high = figure.value if figure.high is None else figure.high
        said = found.span(name)
        agrees = said is not None and said.meets(Span(figure.value, low, high), 1e-9)
        why = "" if agrees else "another config or setting than the engine's, or the printed memory is another rank's"
        line = printed.how.removeprefix("line ").partition(",")[0]
        checks.append(
            Check(
                what, printed.unit, printed.value, figure.value, low, high, agrees, figure.how, why,
                int(line) if line.isdigit() else 0,
            )
        )  # fmt: skip
    return tuple(checks)


def _count(found: LogBudget, name: str) -> int | None:
    value = found.value(name)
    return int(value) if value is not None and value >= 1 else None
