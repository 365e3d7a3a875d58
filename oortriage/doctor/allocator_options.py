"""Options of PyTorch's CUDA allocator by release, and the values that are legal.

Names were read in libc10.so and libc10_cuda.so of the wheels 2.4.0, 2.6.0, 2.8.0, 2.9.1, 2.10.0, 2.11.0 and 2.13.0;
``since`` is the first of these that has the name. Ranges of values are those of PyTorch's CUDA notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

SOURCE = (
    "libc10.so and libc10_cuda.so of PyTorch's wheels 2.4.0 to 2.13.0; docs.pytorch.org/docs/stable/notes/cuda.html"
)
#: The first sampled wheel whose CUDA allocator reads PYTORCH_ALLOC_CONF; 2.9.1 reads PYTORCH_CUDA_ALLOC_CONF alone.
GENERAL_NAME_SINCE = (2, 10)
GENERAL, CUDA = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


class Option(msgspec.Struct, frozen=True):
    """An option. ``legal`` says of a value's text whether it is; ``wants`` says it in words."""

    since: tuple[int, int]
    legal: Callable[[str], bool]
    wants: str


def _number(text: str) -> float | None:
    try:
        return float(text) if re.fullmatch(r"-?\d{1,12}(?:\.\d{1,12})?", text) else None
    except ValueError:
        return None


def _whole_above(least: int) -> Callable[[str], bool]:
    return lambda text: bool(re.fullmatch(r"\d{1,12}", text)) and int(text) > least


def _truth(text: str) -> bool:
    return text in ("True", "False")


def _share(text: str) -> bool:
    return (value := _number(text)) is not None and 0 < value < 1


def _part(text: str) -> bool:
    return (value := _number(text)) is not None and 0 <= value <= 1


def _power(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,6}", text)) and int(text) > 0 and int(text).bit_count() == 1


def _divisions(text: str) -> bool:
    if not text.startswith("["):
        return _power(text)
    parts = text.strip("[]").split(",")
    return all(re.fullmatch(r"(?:\d{1,6}|>):\d{1,6}", one) and _power(one.split(":")[1]) for one in parts)


_ALWAYS = (2, 0)
OPTIONS: dict[str, Option] = {
    "backend": Option(_ALWAYS, lambda text: text in ("native", "cudaMallocAsync"), "native or cudaMallocAsync"),
    "max_split_size_mb": Option(_ALWAYS, _whole_above(20), "a whole number above 20"),
    "garbage_collection_threshold": Option(_ALWAYS, _share, "a number between 0 and 1"),
    "roundup_power2_divisions": Option(_ALWAYS, _divisions, "a power of two, or [size:power,...]"),
    "expandable_segments": Option(_ALWAYS, _truth, "True or False"),
    "release_lock_on_cudamalloc": Option(_ALWAYS, _truth, "True or False"),
    "pinned_use_cuda_host_register": Option(_ALWAYS, _truth, "True or False"),
    "pinned_use_hip_host_register": Option(_ALWAYS, _truth, "True or False"),
    "pinned_num_register_threads": Option(
        _ALWAYS, lambda text: _power(text) and int(text) <= 128, "a power of two up to 128"
    ),
    "max_non_split_rounding_mb": Option((2, 6), _whole_above(20), "a whole number above 20"),
    "pinned_use_background_threads": Option((2, 6), _truth, "True or False"),
    "graph_capture_record_stream_reuse": Option((2, 9), _truth, "True or False"),
    "per_process_memory_fraction": Option((2, 10), _part, "a number from 0 to 1"),
    "pinned_reserve_segment_size_mb": Option((2, 10), _whole_above(0), "a whole number above 0"),
    "large_segment_size_mb": Option((2, 11), _whole_above(0), "a whole number above 0"),
    "throw_on_cudamalloc_oom": Option((2, 13), _truth, "True or False"),
}


def parts_of(text: str) -> list[tuple[str, str]]:
    """Split a setting as PyTorch does: blanks do not count, commas part options, except within brackets."""
    squeezed = text.replace(" ", "")
    found = []
    for part in re.findall(r"[^,\[]*(?:\[[^\]]*\])?[^,\[]*", squeezed):
        if part:
            name, _, value = part.partition(":")
            found.append((name, value))
    return found
