"""What one rank is left with on a card, before anything is started: weights, the profile run, graphs, put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from oortriage.budget.figure import Figure
from oortriage.budget.graphs import capture_sizes, graph_memory
from oortriage.budget.memory import Available, available_for_kv
from oortriage.budget.plan import Planned
from oortriage.budget.profile import activation_peak
from oortriage.budget.sums import estimate, high
from oortriage.budget.weights import weight_bytes
from oortriage.errors import UsageError
from oortriage.evidence.values import GIB
from oortriage.gpu.card_memory import card_memories

#: Added to the upper bound of the peak for a model that sees pictures or hears.
_ENCODER_BYTES = 8 << 30


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine is started, as far as it decides what is left. Bytes; None: the release's own choice, or unknown.

    ``free`` is what is free on the card at start and ``others`` what other processes hold; ``cpu_offload`` is
    ``--cpu-offload-gb``: weights that stay in the host's memory, bytes a rank. The figures ``weights``,
    ``activation``, ``non_torch`` and ``graphs`` take the place of estimates, where a log or a user has them.
    """

    total: Figure
    utilization: float | None = None
    kv_cache_memory: int | None = None
    eager: bool = False
    capture: tuple[int, ...] = ()
    charge_graphs: bool | None = None
    capability: str = ""
    quantization: dict[str, Any] | str | None = None
    checkpoint: Path | None = None
    cpu_offload: float = 0.0
    free: Figure | None = None
    others: Figure | None = None
    unified: bool = False
    weights: Figure | None = None
    activation: Figure | None = None
    non_torch: Figure | None = None
    graphs: Figure | None = None


def available_at_start(planned: Planned, start: Start) -> Available:
    """Estimate every term that is not given, and work out what the KV cache of the fullest rank gets.

    Not counted: LoRA adapters, drafters of speculative decoding, and encoders of pictures and sound (noted).

    Raises:
        InputError: the checkpoint cannot be read.
        UsageError: settings that the release does not have, or a format of weights that is not known.
    """
    settings, model, layout = planned.settings, planned.model, planned.layout
    tokens, seqs = int(planned.max_num_batched_tokens.value), int(planned.max_num_seqs.value)
    weights = start.weights or _weights(planned, start)
    activation = (
        start.activation
        or activation_peak(
            model,
            version=settings.version,
            dtype=layout.dtype,
            max_num_batched_tokens=tokens,
            max_num_seqs=seqs,
            tp=settings.tp,
            eager=start.eager,
            engine=layout.engine,
            capability=start.capability,
        ).figure
    )
    notes = []
    if model.multimodal and start.activation is None:
        # Llama-3.2-11B-Vision printed 36.63 GiB with 128 sequences (vllm pull request 12126): no bound is known
        activation = msgspec.structs.replace(activation, high=high(activation) + _ENCODER_BYTES)
        notes.append("the profile run of what sees pictures or hears is not modelled: the peak can be much higher")
    sizes = capture_sizes(
        settings.version,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        eager=start.eager,
        given=start.capture,
        capability=start.capability,
        engine=layout.engine,
    )
    found = available_for_kv(
        version=settings.version,
        total=start.total,
        weights=weights,
        activation=activation,
        non_torch=start.non_torch,
        graphs=start.graphs
        or graph_memory(model, version=settings.version, sizes=sizes, tp=settings.tp, engine=layout.engine),
        utilization=start.utilization,
        free=start.free,
        others=start.others,
        kv_cache_memory=start.kv_cache_memory,
        engine=layout.engine,
        charge_graphs=start.charge_graphs,
        unified=start.unified,
        tp=settings.tp,
        pp=settings.pp,
    )
    return msgspec.structs.replace(found, notes=(*found.notes, *notes))


def _weights(planned: Planned, start: Start) -> Figure:
    """Weights of the fullest rank that stay on the card."""
    settings = planned.settings
    whole = weight_bytes(
        planned.model,
        dtype=planned.layout.dtype,
        tp=settings.tp,
        pp=settings.pp,
        quantization=start.quantization,
        source=start.checkpoint,
    )
    if not start.cpu_offload:
        return whole
    if not 0 < start.cpu_offload < 1 << 50:
        raise UsageError(f"--cpu-offload-gb: {start.cpu_offload:g} bytes are no size")
    left = max(whole.value - start.cpu_offload, 0.0)
    # whole tensors move, up to the size that is asked for
    return estimate(left, f"{whole.how}, less what is offloaded", least=left, most=left + whole.value * 0.05)


def card_total(name: str) -> tuple[Figure, bool]:
    """Return a card's memory in bytes by its name, and whether it is shared with the host.

    Raises:
        UsageError: the card is not known, or came in several sizes.
    """
    found = card_memories(name)
    if not found:
        raise UsageError(f"--gpu {name[:60]!r}: how much memory it has is not known here; give its size")
    if len(found) > 1:
        sizes = " or ".join(f"{card.name!r}" for card in found)
        raise UsageError(f"--gpu {name[:60]!r} came in {len(found)} sizes: write {sizes}")
    (card,) = found
    spread = card.high > card.low
    return (
        Figure(
            card.size,
            "bytes",
            "measured" if card.printed and not spread else "estimated",
            f"{card.name}: {card.size / GIB:.2f} GiB, {card.source}",
            low=card.low if spread else None,
            high=card.high if spread else None,
        ),
        card.unified,
    )
