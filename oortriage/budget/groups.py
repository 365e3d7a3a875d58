"""How vLLM puts layers into groups that share a block table, and what a group needs for one request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil

import msgspec

from oortriage.budget import versions
from oortriage.budget.page import Page
from oortriage.errors import UsageError

_WINDOWED = ("sliding", "chunked")
_FULL = ("full", "mla")


class Layers(msgspec.Struct, frozen=True):
    """Layers with the same page."""

    page: Page
    count: int

    @property
    def bytes(self) -> int:
        """Bytes of one block in all of them."""
        return self.page.bytes * self.count


class Group(msgspec.Struct, frozen=True):
    """Layers with one block table. ``page`` is the largest of the group.

    ``mixed``: pages of several sizes in one group; each layer then has memory of its own.
    """

    page: Page
    #: For each pipeline stage, its layers in this group.
    stages: tuple[tuple[Layers, ...], ...]
    mixed: bool = False

    def layers(self, stage: int) -> int:
        """Count the group's layers on a stage."""
        return sum(one.count for one in self.stages[stage])

    def block_bytes(self, stage: int) -> int:
        """Return the bytes of one block in all layers of the group on a stage."""
        return sum(one.bytes for one in self.stages[stage])


class Request(msgspec.Struct, frozen=True):
    """What decides how many blocks one request takes: tokens, and ranks that share a context."""

    tokens: int
    #: Tokens scheduled but not settled, at most: what a window holds beside itself.
    in_flight: int
    context_ranks: int = 1
    #: ``none``, ``align`` or ``all``: how often the state of a layer without attention is kept.
    state_mode: str = "none"


def blocks_per_request(page: Page, request: Request) -> int:
    """Count the blocks that one request takes in a layer (vLLM 0.17.1 v1/kv_cache_interface.py).

    A sliding window may begin inside a block, hence one more; a state takes one block, two where it is kept at the
    block before as well.
    """
    size = page.block_size or request.tokens
    if page.kind == "sliding":
        return ceil(min(page.window - 1 + request.in_flight, request.tokens) / size) + 1
    if page.kind == "chunked":
        return ceil(min(page.window + request.in_flight, request.tokens) / size)
    if page.kind == "state":
        return {"none": 1, "align": 2}.get(request.state_mode) or ceil(request.tokens / size)
    return ceil(ceil(request.tokens / request.context_ranks) / size)


def group_pages(stages: Sequence[Sequence[Page]], version: str, *, hybrid: bool) -> tuple[tuple[Group, ...], list[str]]:
    """Group the layers of all stages; the strings are notes.

    Raises:
        UsageError: the release cannot hold such layers together, and would say so at start.
    """
    notes: list[str] = []
    placed = [(stage, page) for stage, pages in enumerate(stages) for page in pages]
    if not placed:
        return (), notes
    if not (hybrid and versions.holds(version, versions.HYBRID_SINCE)):
        placed = _unified(placed, notes)
    distinct = list(dict.fromkeys(page for _, page in placed))
    if len(distinct) == 1:
        return (_group(distinct[0], placed, len(stages)),), notes
    if _one_type(distinct):
        if not versions.holds(version, versions.MIXED_WIDTHS_SINCE):
            raise UsageError(
                f"vLLM {version} cannot hold layers of several widths; "
                f"it can from {versions.MIXED_WIDTHS_SINCE.since} on"
            )
        return (_group(max(distinct, key=lambda page: page.bytes), placed, len(stages), mixed=True),), notes
    if not versions.holds(version, versions.HYBRID_SINCE):
        raise UsageError(f"vLLM {version} cannot hold these kinds of layers together")
    if not hybrid:
        raise UsageError("the hybrid KV cache manager is disabled, and these layers cannot be made one kind")
    placed = _same_size(placed, version, notes)
    return _split(placed, len(stages), version, notes), notes


def _unified(placed: list[tuple[int, Page]], notes: list[str]) -> list[tuple[int, Page]]:
    """Charge layers with a window like full ones, where there are full ones too."""
    kinds = {page.kind for _, page in placed}
    if not kinds & set(_FULL) or not kinds & set(_WINDOWED):
        return placed
    notes.append("without the hybrid KV cache manager layers with a window are charged like full ones")
    return [
        (stage, msgspec.structs.replace(page, kind="full", window=0) if page.kind in _WINDOWED else page)
        for stage, page in placed
    ]


def _one_type(pages: Sequence[Page]) -> bool:
    """Tell whether all pages need the same slots (vLLM 0.11.0 UniformTypeKVCacheSpecs)."""
    if len({page.block_size for page in pages}) > 1:
        return False
    if all(page.kind in _FULL for page in pages):
        return True
    return len({(page.kind, page.window) for page in pages}) == 1 and pages[0].kind in (*_WINDOWED, "state")


def _same_size(placed: list[tuple[int, Page]], version: str, notes: list[str]) -> list[tuple[int, Page]]:
    """Bring pages to one size, by larger blocks or by padding."""
    largest = max(page.bytes for _, page in placed)
    if all(page.bytes == largest for _, page in placed):
        return placed
    how = versions.fact(version, versions.MIXED_PAGES).value
    if how == "no":
        raise UsageError(
            f"vLLM {version} cannot hold layers whose pages differ in size; it can from "
            f"{versions.MIXED_PAGES[1].since} on"
        )
    if versions.release(versions.rules_from(version)) >= versions.release("0.30.0"):
        notes.append("pages of several sizes: a backend that packs them side by side in a block needs less than this")
    grown = []
    for stage, page in placed:
        if page.bytes == largest:
            grown.append((stage, page))
        elif page.kind != "state" and largest % page.bytes == 0:
            block_size = page.block_size * (largest // page.bytes)
            grown.append((stage, msgspec.structs.replace(page, bytes=largest, block_size=block_size)))
        elif how == "pad" and page.kind != "mla":
            grown.append((stage, msgspec.structs.replace(page, bytes=largest)))
        else:
            raise UsageError(
                f"vLLM {version} cannot hold these layers together: a page of {page.bytes:,} bytes does not divide "
                f"one of {largest:,}"
            )
    notes.append(f"smaller pages are brought to {largest:,} bytes")
    return grown


def _split(placed: list[tuple[int, Page]], stages: int, version: str, notes: list[str]) -> tuple[Group, ...]:
    """Split the kinds into groups of as many layers (vLLM 0.17.1 _get_kv_cache_groups_uniform_page_size)."""
    kinds: dict[Page, list[tuple[int, Page]]] = {}
    for stage, page in placed:
        kinds.setdefault(page, []).append((stage, page))
    size = group_size([len(layers) for layers in kinds.values()], version)
    groups = []
    for page, layers in kinds.items():
        number = ceil(len(layers) / size)
        padding = number * size - len(layers)
        if padding:
            padded = "1 padding layer" if padding == 1 else f"{padding} padding layers"
            notes.append(f"{padded} beside {len(layers)} {page.kind} ones: memory for nothing")
        dealt = versions.holds(version, versions.DEALT_SINCE)
        for index in range(number):
            chosen = layers[index::number] if dealt else layers[index * size : (index + 1) * size]
            groups.append(_group(page, chosen, stages))
    return tuple(groups)


def group_size(counts: Sequence[int], version: str) -> int:
    """Return how many layers a group holds: the fewest of a kind, or the most where they are nearly as many."""
    fewest, most = min(counts), max(counts)
    return most if most < fewest * float(versions.fact(version, versions.GROUP_RATIO).value) else fewest


def _group(page: Page, placed: Sequence[tuple[int, Page]], stages: int, *, mixed: bool = False) -> Group:
    return Group(page, tuple(count_pages([one for at, one in placed if at == stage]) for stage in range(stages)), mixed)


def count_pages(pages: Sequence[Page]) -> tuple[Layers, ...]:
    """Count equal pages, in the order in which they come first."""
    return tuple(Layers(page, count) for page, count in Counter(pages).items())
