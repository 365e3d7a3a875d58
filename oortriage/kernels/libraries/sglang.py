"""SGLang in the child process: which of its files are real, and what stands in for the rest."""

from __future__ import annotations

import logging
import re
from types import ModuleType, SimpleNamespace
from typing import Any

from oortriage.gpu.virtual.driver import Card
from oortriage.kernels.libraries.sglang_operators import operator_faces
from oortriage.kernels.source import Source
from oortriage.kernels.stand_in import Face, SourceLibrary

#: Files of SGLang that are real whatever the recipe; a recipe adds its own.
_REAL = (
    r"sglang\.srt\.environ",
    r"sglang\.srt\.layers\.attention\.triton_ops\..*",
    r"sglang\.kernels\.ops\.attention\.[a-z_]+",
)


def _platform(card: Card) -> dict[str, Any]:
    """Answer what ``sglang.srt.utils`` answers about a card."""
    major, minor = card.capability
    cuda, hip = card.target.backend == "cuda", card.target.backend == "hip"
    arch = str(card.target.arch)

    def constant(value: Any) -> Any:
        return lambda *_a, **_k: value

    return {
        "is_cuda": constant(cuda),
        "is_hip": constant(hip),
        "is_cuda_alike": constant(True),
        **{
            f"is_{other}": constant(False)
            for other in ("cpu", "hpu", "musa", "npu", "sail", "xpu", "mps", "host_cpu_arm64")
        },
        "is_sm90_supported": constant(cuda and major == 9),
        "is_sm100_supported": constant(cuda and major == 10),
        "is_sm120_supported": constant(cuda and major == 12),
        "is_gfx95_supported": constant(hip and arch.startswith("gfx95")),
        "is_gfx1250_supported": constant(hip and arch == "gfx1250"),
        "get_device_capability": constant((major, minor)),
        "get_device_name": constant(card.name),
        "get_device_core_count": constant(card.multiprocessors),
        "get_device_sm": constant(major * 10 + minor if cuda else 0),
        "cpu_has_amx_support": constant(False),
        "use_intel_xpu_backend": constant(False),
        "get_bool_env_var": lambda _name, default="false": str(default).lower() in ("true", "1"),
        "get_int_env_var": lambda _name, default=0: default,
        "supports_custom_op": constant(False),
        "next_power_of_2": lambda n: 1 << (n - 1).bit_length() if n > 0 else 1,
        "ceil_div": lambda a, b: -(a // -b),
        "ceil_align": lambda a, b: -(a // -b) * b,
        "direct_register_custom_op": constant(None),
        "log_info_on_rank0": constant(None),
    }


def library(source: Source, card: Card, real: tuple[str, ...]) -> SourceLibrary:
    """Make SGLang's kernel files importable in this process, for a card.

    Args:
        source: its files.
        card: what its platform helpers answer for.
        real: patterns of further modules whose files are to be imported.
    """
    noted: set[str] = set()
    for name in ("info_once", "warning_once", "debug_once"):  # SGLang adds these to every logger when it starts
        setattr(logging.Logger, name, lambda *_a, **_k: None)

    def utils(module: ModuleType) -> None:
        module.__dict__.update(_platform(card))

    def server_args(module: ModuleType) -> None:
        # A server started with no options; what a release asks beyond these is false as well.
        class Defaults(SimpleNamespace):
            def __getattr__(self, name: str) -> None:
                noted.add(f"sglang.srt.server_args.{name}")

        defaults = Defaults(enable_deterministic_inference=False, enable_fused_moe_sum_all_reduce=False)
        module.__dict__.update(get_global_server_args=lambda: defaults, ServerArgs=Defaults)

    faces: dict[str, Face] = {
        "sglang.srt.utils": utils,
        "sglang.srt.utils.common": utils,
        "sglang.srt.server_args": server_args,
        **operator_faces(card),
    }
    # SGLang's compiled operators are packages of their own, and up to 0.4.6 some were vLLM's.
    for outside in ("sgl_kernel", "vllm"):
        SourceLibrary(outside, source, lambda _name: False, faces, noted)
    pattern = re.compile("|".join((*_REAL, *real)))
    return SourceLibrary("sglang", source, lambda name: bool(pattern.fullmatch(name)), faces, noted)
