"""The two ways in which ``oortriage budget`` learns what the KV cache gets: the bytes themselves, or a card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from oortriage.budget.figure import Figure
    from oortriage.budget.plan import Budget, Planned


class Card(NamedTuple):
    """A card: its memory in bytes, its compute capability (empty: not known), whether it shares the host's memory."""

    name: str
    total: Figure
    unified: bool
    capability: str


class Told(NamedTuple):
    """What the user says beside the card, as typed. Sizes are of one rank; empty: not said."""

    utilization: float | None
    kv_memory: str
    free: str
    others: str
    weights: str
    activation: str
    non_torch: str
    graphs: str
    eager: bool
    checkpoint: Path | None


def find_card(gpu: str, gpu_memory: str) -> Card | None:
    """Find the card; None when none is named.

    Raises:
        UsageError: the card is not known and its memory is not said, or the size is none.
    """
    if not gpu and not gpu_memory:
        return None
    from oortriage.budget.startup import card_total

    total, unified = _told("--gpu-memory", gpu_memory), False
    if total is None:
        total, unified = card_total(gpu)
    return Card(gpu or "this card", total, unified, _capability(gpu))


def _capability(gpu: str) -> str:
    """Look the compute capability up; a card that is not in the table has none here."""
    from oortriage.errors import UsageError
    from oortriage.gpu.resolve import resolve

    try:
        found = resolve(gpu)
    except UsageError:
        return ""
    return found.name if found.vendor == "nvidia" else ""


def on_card(planned: Planned, card: Card, told: Told, model: Path) -> Budget:
    """Work out what is left on the card, and what it holds.

    Raises:
        UsageError: a setting that the release does not have, or a size that is none.
        InputError: the checkpoint cannot be read.
    """
    from oortriage.budget.plan import budget
    from oortriage.budget.size import parse_size
    from oortriage.budget.startup import Start, available_at_start

    start = Start(
        total=card.total,
        utilization=told.utilization,
        kv_cache_memory=parse_size(told.kv_memory, "--kv-memory") if told.kv_memory else None,
        eager=told.eager,
        capability=card.capability,
        checkpoint=told.checkpoint or _checkpoint_beside(model),
        free=_told("--free-memory", told.free),
        others=_told("--other-memory", told.others),
        unified=card.unified,
        weights=_told("--weights", told.weights),
        activation=_told("--activation", told.activation),
        non_torch=_told("--non-torch", told.non_torch),
        graphs=_told("--graphs", told.graphs),
    )
    left = available_at_start(planned, start)
    return budget(planned, left.available, name=title(model), memory=left)


def given(planned: Planned, kv_memory: str, model: Path) -> Budget:
    """Take the bytes for the KV cache as the user gives them.

    Raises:
        UsageError: none were given, or they are no size.
    """
    from oortriage.budget.plan import budget
    from oortriage.errors import UsageError

    size = _told("--kv-memory", kv_memory)
    if size is None:
        raise UsageError("how much memory? --gpu L4 (or --gpu-memory 22GiB), or --kv-memory 5GiB for what one rank has")
    return budget(planned, size, name=title(model))


def title(model: Path) -> str:
    """Name a model after its folder, or its file where that says more."""
    return model.parent.name or model.name if model.name == "config.json" else model.name


def _told(option: str, text: str) -> Figure | None:
    from oortriage.budget.figure import Figure
    from oortriage.budget.size import parse_size

    return Figure(parse_size(text, option), "bytes", "given", option) if text else None


def _checkpoint_beside(model: Path) -> Path | None:
    """Return the model's folder where weights lie in it."""
    folder = model if model.is_dir() else model.parent
    return folder if next(folder.glob("*.safetensors"), None) else None
