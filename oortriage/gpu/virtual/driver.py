"""A Triton driver for a card that is not there: it answers target and limits, and launches nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from oortriage.gpu.virtual.adapter import Target, gpu_target


class Card(msgspec.Struct, frozen=True):
    """What wrappers may ask about the card. Sizes in bytes; ``multiprocessors`` is a count.

    The count only steers how many blocks a wrapper launches, never how large one is; where the card
    is known by its architecture alone it is an assumption.
    """

    target: Target
    limit_bytes: int
    name: str = "virtual GPU"
    multiprocessors: int = 40
    registers: int = 65536
    memory_bytes: int = 16 << 30
    tensor_memory_columns: int = 512

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability; of an AMD card what PyTorch's ROCm build answers for it."""
        if self.target.backend == "cuda":
            return divmod(int(self.target.arch), 10)
        digits = str(self.target.arch).removeprefix("gfx")
        return int(digits[:-2]), int(digits[-2], 16)


class _Utilities:
    """The part of a driver that asks the device."""

    def __init__(self, card: Card) -> None:
        self._card = card

    def get_device_properties(self, _device: int) -> dict[str, int]:
        """Answer with the card's figures."""
        return {
            "max_shared_mem": self._card.limit_bytes,
            "max_num_regs": self._card.registers,
            "multiprocessor_count": self._card.multiprocessors,
            "warpSize": self._card.target.warp_size,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 256,
        }

    def unload_module(self, _module: Any) -> None:
        """Nothing was loaded."""


def call_once(kernel: Callable[[], Any], quantiles: Any = None, **_: Any) -> list[float]:
    """Call a kernel instead of measuring it, so that a configuration that does not fit is found out."""
    kernel()
    return [1.0] * len(quantiles or (1,))


class VirtualDriver:
    """Stands in for Triton's CUDA or HIP driver.

    ``device`` differs for each card, because Triton keeps compiled kernels by device number.
    """

    def __init__(self, card: Card, device: int) -> None:
        """Stand in for a card."""
        self.card, self.device = card, device
        self.utils = _Utilities(card)

    @classmethod
    def is_active(cls) -> bool:
        """It is."""
        return True

    def get_current_device(self) -> int:
        """Return the number under which Triton caches."""
        return self.device

    def set_current_device(self, device: int) -> None:
        """Accept whatever a wrapper chooses."""

    def get_current_stream(self, _device: int | None = None) -> int:
        """Return the default stream."""
        return 0

    def get_current_target(self) -> Any:
        """Return what to compile for."""
        return gpu_target(self.card.target)

    def get_device_capability(self, _device: int | None = None) -> tuple[int, int]:
        """Return the compute capability."""
        return self.card.capability

    def get_active_torch_device(self) -> Any:
        """Return the device tensors lie on; here they lie on the CPU."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """Return torch's module for the device."""
        import torch

        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return what an autotuner measures with."""
        return call_once

    def get_empty_cache_for_benchmark(self) -> Any:
        """There is no cache to clear."""
        return None

    def clear_cache(self, _cache: Any) -> None:
        """There is no cache to clear."""

    def map_python_to_cpp_type(self, name: str) -> str:
        """Name a type in C; nothing is generated from it."""
        return name

    def assemble_tensormap_to_arg(self, _maps: Any, arguments: Any) -> Any:
        """Pass arguments on (up to Triton 3.4)."""
        return arguments
