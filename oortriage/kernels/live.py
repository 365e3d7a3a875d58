"""What a recipe needs to be run in earnest: inputs that are true, outputs that are poisoned, a reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class LiveCase:
    """One batch on a device.

    Args:
        call: runs the kernel on the ``i``-th copy of the inputs.
        outputs: its output tensors, one a copy.
        reference: computes the first copy's output in float64.
        copies: how many copies there are, so that a timed run finds nothing in the cache.
        bytes_moved: bytes that must be read and written at least.
        flops: arithmetic operations that must be done at least.
    """

    def __init__(
        self,
        call: Callable[[int], Any],
        outputs: list[Any],
        reference: Callable[[], Any],
        bytes_moved: int,
        flops: int,
    ) -> None:
        """Keep the parts."""
        self.call, self.outputs, self.reference = call, outputs, reference
        self.bytes_moved, self.flops = bytes_moved, flops

    @property
    def copies(self) -> int:
        """How many copies of the inputs there are."""
        return len(self.outputs)

    def poison(self) -> None:
        """Fill the outputs with NaN: what the kernel does not write shows."""
        for output in self.outputs:
            output.fill_(float("nan"))

    def error(self) -> tuple[float, int]:
        """Return the relative error of the first copy, ||out - ref|| / ||ref||, and how many outputs are NaN."""
        import torch

        wanted = self.reference()
        got = self.outputs[0].to(torch.float64)
        missing = int(got.isnan().sum().item())
        difference = torch.linalg.vector_norm(got.nan_to_num() - wanted)
        return float(difference / torch.linalg.vector_norm(wanted)), missing


class Batch(msgspec.Struct, frozen=True):
    """Sequences of a batch as (new tokens, tokens in all).

    ``phase``: whose launch takes it, where that is not the sequences' own: vLLM takes many decoding sequences
    with prefill's kernel.
    """

    name: str
    sequences: tuple[tuple[int, int], ...]
    phase: str = ""

    @property
    def taken_by(self) -> str:
        """Name the phase whose launch takes it; a mixed batch is taken by prefill's."""
        return self.phase or ("decode" if all(new == 1 for new, _ in self.sequences) else "prefill")


#: Batches whose edges matter: one token, one page and one more, lengths that fill no tile, a long context.
CHECKED = (
    Batch("prefill", ((512, 512), (33, 33), (1, 1), (17, 40), (16, 16))),
    Batch("decode", ((1, 1500), (1, 1), (1, 17), (1, 512), (1, 33))),
    Batch("mixed", ((1, 700), (64, 64), (1, 16), (100, 1300), (2, 33))),
)
#: Batches of a serving engine's size, for timing.
TIMED = (
    Batch("prefill 4 x 512", ((512, 512),) * 4),
    Batch("prefill 1 x 2048", ((2048, 2048),)),
    Batch("decode 32 x 1024", ((1, 1024),) * 32),
)
Live = Callable[[Any, dict[str, Any], Batch, str, int, int], LiveCase]
