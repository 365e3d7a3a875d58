"""What PyTorch answers about the card that is not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from oortriage.gpu.virtual.driver import Card


@contextlib.contextmanager
def torch_sees(card: Card) -> Iterator[None]:
    """Let ``torch.cuda`` and ``torch.version`` answer for a card within the block.

    Tensors stay on the CPU: only questions are answered, nothing is allocated on a device.
    """
    import torch

    properties = SimpleNamespace(
        name=card.name,
        major=card.capability[0],
        minor=card.capability[1],
        multi_processor_count=card.multiprocessors,
        total_memory=card.memory_bytes,
        warp_size=card.target.warp_size,
        shared_memory_per_block_optin=card.limit_bytes,
        regs_per_multiprocessor=card.registers,
        gcnArchName=str(card.target.arch),
    )
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda *_a, **_k: card.capability,
        "get_device_properties": lambda *_a, **_k: properties,
        "get_device_name": lambda *_a, **_k: card.name,
        "synchronize": lambda *_a, **_k: None,
        "current_stream": lambda *_a, **_k: SimpleNamespace(cuda_stream=0),
        "device": lambda *_a, **_k: contextlib.nullcontext(),
        "is_current_stream_capturing": lambda: False,
    }
    with contextlib.ExitStack() as stack:
        for name, answer in answers.items():
            stack.callback(setattr, torch.cuda, name, getattr(torch.cuda, name))
            setattr(torch.cuda, name, answer)
        hip = card.target.backend == "hip"
        for name, version in (
            ("hip", "6.4.0" if hip else None),
            ("cuda", None if hip else torch.version.cuda or "12.8"),
        ):
            stack.callback(setattr, torch.version, name, getattr(torch.version, name))
            setattr(torch.version, name, version)
        yield
