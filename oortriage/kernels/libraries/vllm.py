"""vLLM in the child process: which of its files are real, and what stands in for the rest."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from types import ModuleType
from typing import Any, NamedTuple

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.libraries.literals import literal_constants
from oortriage.kernels.libraries.vllm_operators import fill_custom_ops, install_operators
from oortriage.kernels.libraries.vllm_rocm import fill_rocm
from oortriage.kernels.source import Source
from oortriage.kernels.stand_in import Face, SourceLibrary, StandIn

#: Files of vLLM that are real whatever the recipe; a recipe adds its own.
_REAL = (
    r"vllm\.envs",
    r"vllm\.scalar_type",
    r"vllm\.utils\.math_utils",
    r"vllm\.(?:v1\.)?attention\.ops\..*",
    r"vllm\.v1\.kv_cache_interface",
)


class Capability(NamedTuple):
    """A compute capability as vLLM's platform answers it."""

    major: int
    minor: int

    def to_int(self) -> int:
        """Return 75 for 7.5."""
        return self.major * 10 + self.minor


class Platform:
    """vLLM's ``current_platform`` for a card; what it does not know is a stand-in, and noted."""

    def __init__(self, card: Card, noted: set[str]) -> None:
        """Answer for a card."""
        self.__dict__["_card"], self.__dict__["_noted"] = card, noted

    device_type = "cuda"
    device_name = "cuda"
    simple_compile_backend = "inductor"

    def is_cuda(self) -> bool:
        """Tell whether it is NVIDIA's."""
        return bool(self._card.target.backend == "cuda")

    def is_rocm(self) -> bool:
        """Tell whether it is AMD's."""
        return bool(self._card.target.backend == "hip")

    def is_cuda_alike(self) -> bool:
        """Tell whether it is one of the two."""
        return True

    def is_other(self) -> bool:
        """Tell whether it is something else than a GPU of the two: it never is."""
        return False

    is_xpu = is_cpu = is_tpu = is_hpu = is_neuron = is_zen_cpu = is_out_of_tree = is_unspecified = is_other

    def get_device_capability(self, device_id: int = 0) -> Capability:  # noqa: ARG002
        """Return the compute capability."""
        return Capability(*self._card.capability)

    def has_device_capability(self, capability: Any, device_id: int = 0) -> bool:  # noqa: ARG002
        """Compare: at least this capability."""
        wanted = capability if isinstance(capability, tuple) else divmod(int(capability), 10)
        return bool(tuple(self._card.capability) >= tuple(wanted))

    def is_device_capability(self, capability: Any, device_id: int = 0) -> bool:  # noqa: ARG002
        """Compare: exactly this capability."""
        wanted = capability if isinstance(capability, tuple) else divmod(int(capability), 10)
        return bool(tuple(self._card.capability) == tuple(wanted))

    def is_device_capability_family(self, capability: int, device_id: int = 0) -> bool:  # noqa: ARG002
        """Compare: the same major version."""
        return bool(self._card.capability[0] == int(capability) // 10)

    def get_device_name(self, device_id: int = 0) -> str:  # noqa: ARG002
        """Return the card's name."""
        return str(self._card.name)

    def num_compute_units(self, device_id: int = 0) -> int:  # noqa: ARG002
        """Return the number of multiprocessors."""
        return int(self._card.multiprocessors)

    def fp8_dtype(self) -> Any:
        """Return the 8-bit float type that the card computes with."""
        import torch

        return torch.float8_e4m3fnuz if self.is_fp8_fnuz() else torch.float8_e4m3fn

    def is_fp8_fnuz(self) -> bool:
        """Tell whether 8-bit floats have AMD's older encoding."""
        return str(self._card.target.arch) in ("gfx90a", "gfx940", "gfx941", "gfx942")

    def supports_fp8(self) -> bool:
        """Tell whether the card computes with 8-bit floats."""
        return bool(self._card.target.backend == "hip" or self._card.capability >= (8, 9))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._noted.add(f"vllm.platforms.current_platform.{name}")
        return StandIn(f"current_platform.{name}", self._noted)


class _Logger(logging.Logger):
    """A logger with the methods that vLLM adds to its own."""

    def info_once(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    warning_once = debug_once = info_once


def _without_packages(noted: set[str]) -> None:
    """Stand in for packages that vLLM needs and kernels do not: names of checkpoint formats."""
    for name in ("compressed_tensors", "compressed_tensors.quantization"):
        module = ModuleType(name)
        module.__getattr__ = StandIn(name, noted).__getattr__  # type: ignore[method-assign]
        module.__path__ = []
        sys.modules[name] = module


def library(source: Source, card: Card, real: tuple[str, ...]) -> SourceLibrary:
    """Make vLLM's kernel files importable in this process, for a card.

    Args:
        source: its files.
        card: what its platform answers for.
        real: patterns of further modules whose files are to be imported.
    """
    noted: set[str] = set()

    def triton_utils(module: ModuleType) -> None:
        import triton
        import triton.language as tl

        module.__dict__.update(HAS_TRITON=True, triton=triton, tl=tl)
        with contextlib.suppress(ImportError):
            from triton.language.target_info import current_target  # noqa: F401 (from 3.5; newer vLLM looks for it)
        with contextlib.suppress(ImportError):
            from triton.language.extra import libdevice

            module.__dict__["tldevice"] = libdevice

    def platforms(module: ModuleType) -> None:
        install_operators(noted)  # vLLM loads its extension where it finds out its platform
        module.__dict__.update(current_platform=Platform(card, noted), CudaPlatform=type("CudaPlatform", (), {}))

    def logger(module: ModuleType) -> None:
        module.__dict__["init_logger"] = _Logger

    def torch_utils(module: ModuleType) -> None:
        def direct_register_custom_op(*_: Any, **__: Any) -> None:
            """Register nothing: the kernels are called as Python functions."""

        def async_tensor_h2d(data: Any, device: Any = None, dtype: Any = None, out: Any = None) -> Any:
            import torch

            made = torch.as_tensor(data, dtype=dtype, device=device)
            return made if out is None else out.copy_(made)

        module.__dict__.update(direct_register_custom_op=direct_register_custom_op, async_tensor_h2d=async_tensor_h2d)

    def untuned(module: ModuleType) -> None:
        # No configuration is forced and no batch-invariant mode is on: what holds unless a user asks for it.
        module.__dict__.update(get_config=lambda: None, vllm_is_batch_invariant=lambda: False)

    def utils(module: ModuleType) -> None:
        def cdiv(a: int, b: int) -> int:
            return -(a // -b)

        def round_up(x: int, y: int) -> int:
            return (x + y - 1) // y * y

        def next_power_of_2(n: int) -> int:
            return 1 if n < 1 else 1 << (n - 1).bit_length()

        torch_utils(module)
        module.__dict__.update(cdiv=cdiv, round_up=round_up, next_power_of_2=next_power_of_2)

    def literals(module: ModuleType) -> None:
        path = f"{module.__name__.replace('.', '/')}.py"
        if source.has(path):
            module.__dict__.update(literal_constants(source.fetch(path).read_text(encoding="utf-8")))

    faces: dict[str, Face] = {
        "vllm.triton_utils": triton_utils,
        "vllm.platforms": platforms,
        "vllm.platforms.rocm": lambda module: fill_rocm(module, card),
        "vllm.logger": logger,
        "vllm._custom_ops": lambda module: fill_custom_ops(module, card),
        "vllm.model_executor.layers.fused_moe": untuned,
        "vllm.model_executor.layers.batch_invariant": untuned,
        "vllm.attention.backends.utils": literals,  # PAD_SLOT_ID
        "vllm.v1.attention.backends.utils": literals,
        "vllm.utils": utils,
        "vllm.utils.torch_utils": torch_utils,
    }
    _without_packages(noted)
    pattern = re.compile("|".join((*_REAL, *real)))
    return SourceLibrary("vllm", source, lambda name: bool(pattern.fullmatch(name)), faces, noted)
