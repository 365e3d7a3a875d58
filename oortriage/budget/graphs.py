"""CUDA graphs: which batch sizes a release captures, and about how much memory they take."""

from __future__ import annotations

from oortriage.budget.figure import Figure
from oortriage.budget.kv import Engine
from oortriage.budget.model import Model
from oortriage.budget.sums import estimate
from oortriage.budget.versions import Fact, default_engine, holds

#: V1: sizes every 8 up to 512, whatever max_num_seqs is.
EVERY_EIGHT = Fact("1, 2, 4, every 8 up to 512", "0.6.4.post1", "0.11.0", "vLLM 0.8.5 config.py:4031-4046")
AT_MOST_TOKENS = Fact("at most max_num_batched_tokens", "0.8.5", "", "vLLM 0.8.5 config.py:4042-4046")
#: V1: up to twice max_num_seqs and 512; every 8 below 256, every 16 from there.
BY_SEQS = Fact("up to min(2 x max_num_seqs, 512)", "0.11.2", "", "vLLM 0.17.1 config/vllm.py:1310-1410")
LAST_TOKEN = Fact(
    "max_num_batched_tokens itself, where it is small", "0.22.1", "", "vLLM 0.22.1 config/vllm.py:1699-1704"
)
#: On Blackwell data-centre cards (10.x) the most is 1024.
BLACKWELL = Fact("1024 on 10.x", "0.28.0", "", "vLLM 0.33.0 config/vllm.py:2463-2465")

_MIB = 1 << 20


def capture_sizes(
    version: str,
    *,
    max_num_seqs: int,
    max_num_batched_tokens: int | None = None,
    eager: bool = False,
    given: tuple[int, ...] = (),
    capability: str = "",
    engine: Engine | None = None,
) -> tuple[int, ...]:
    """List the batch sizes that the release captures, in tokens, ascending; none with ``--enforce-eager``.

    Args:
        version: vLLM's release.
        max_num_seqs: sequences a step.
        max_num_batched_tokens: tokens a step; None: no bound.
        eager: ``--enforce-eager``.
        given: sizes the user set.
        capability: the card's compute capability, such as ``10.0``.
        engine: V0 or V1; None: the release's default.
    """
    if eager:
        return ()
    bound = max_num_batched_tokens or 1 << 30
    if given:
        return tuple(sorted({size for size in given if 0 < size <= bound}))
    chosen = engine or default_engine(version)
    if chosen == "V0":
        # 1, 2, 4 and every 8 up to the first that holds max_num_seqs (vLLM 0.6.6.post1 config.py:3191-3216).
        most = max_num_seqs if max_num_seqs in (1, 2, 4) else 4 if max_num_seqs == 3 else -(-max_num_seqs // 8) * 8
        return tuple(size for size in (1, 2, 4, *range(8, min(most, 8192) + 1, 8)) if size <= most)
    if not holds(version, BY_SEQS):
        return tuple(
            size for size in (1, 2, 4, *range(8, 513, 8)) if size <= bound or not holds(version, AT_MOST_TOKENS)
        )
    limit = 1024 if capability.startswith("10.") and holds(version, BLACKWELL) else 512
    most = min(2 * max_num_seqs, limit, bound)
    sizes = {size for size in (1, 2, 4) if size <= most}
    sizes |= set(range(8, min(most + 1, 256), 8)) | set(range(256, most + 1, 16))
    if holds(version, LAST_TOKEN) and bound <= most:
        sizes.add(bound)
    return tuple(sorted(sizes))


def graph_memory(
    model: Model, *, version: str, sizes: tuple[int, ...], tp: int = 1, engine: Engine | None = None
) -> Figure:
    """Estimate what the captured graphs hold, bytes on one rank; 0 when nothing is captured.

    Each graph has its launches in driver memory: a constant a layer. All share one pool for their tensors, which the
    largest batch fills. V1 captures most sizes twice (piecewise, and whole for decoding). Printed against estimated:
    0.17 and 0.17 GiB (Qwen2.5-1.5B, 35 sizes, V0 0.7), 0.54 and 0.46 (Qwen3-8B, 51 sizes, 0.15), 0.23 and 0.41
    (Llama-3.1-8B, 51 sizes, 0.31), 0.40 and 0.38 (Qwen2.5-0.5B, 0.26), 0.62 and 0.48 (Granite 2B, 67 sizes, 0.10.2).
    """
    if not sizes:
        return Figure(0.0, "bytes", "derived", "nothing is captured")
    chosen = engine or default_engine(version)
    kinds = 1 if chosen == "V0" else 2
    layers = max(model.num_layers, 1)
    each = layers * 0.05 * _MIB + 1.0 * _MIB
    pool = sizes[-1] * (model.hidden_size * 4 + model.vocab_size / tp) * 2
    value = pool + each * len(sizes) * kinds + 24 * _MIB
    return estimate(value, f"{len(sizes)} sizes up to {sizes[-1]}, {layers} layers", least=value * 0.4, most=value * 4)
