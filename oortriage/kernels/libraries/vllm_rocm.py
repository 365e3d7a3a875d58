"""What vLLM's ROCm platform file answers about a card; the real one asks the driver on import."""

from __future__ import annotations

from types import ModuleType

from oortriage.gpu.virtual.driver import Card


def fill_rocm(module: ModuleType, card: Card) -> None:
    """Give ``vllm.platforms.rocm`` its questions about the architecture (``on_gfx9``, ``on_mi3xx``, ...).

    gfx1250 counts as CDNA, as in the releases that know it.
    """
    arch = str(card.target.arch) if card.target.backend == "hip" else ""
    cdna = arch.startswith("gfx9") or arch == "gfx1250"
    rdna = arch.startswith(("gfx11", "gfx12")) and not cdna
    answers = {
        "on_cdna": cdna,
        "on_rdna": rdna,
        "on_gfx1x": rdna,
        "on_gfx12x": rdna and arch.startswith("gfx12"),
        "on_rdna4": arch in ("gfx1200", "gfx1201"),
        "on_mi3xx": arch in ("gfx942", "gfx950"),
        "on_gfx9": arch in ("gfx90a", "gfx942", "gfx950"),
        "on_gfx11": arch.startswith("gfx11"),
        "on_gfx115x": arch.startswith("gfx115"),
    }
    answers |= {f"on_{name}": arch == name for name in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1250")}
    for name, answer in answers.items():
        module.__dict__[name] = lambda answer=answer: answer
