"""The engine check's own plugin of vLLM: in every process the card that is there plays the card that fails."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any

#: Holds the card to play, as JSON; set by the check alone.
VARIABLE = "OORTRIAGE_ENGINE_PLAYS"

_log = logging.getLogger("vllm.oortriage")
#: Entered once a process and never left: the part is played until the process ends.
_playing = contextlib.ExitStack()
_done: list[str] = []


def register() -> None:
    """Play the card that the environment names; the entry point of ``vllm.general_plugins``.

    Unlike the policy's plugin this one lets errors through: an engine that does not play the card proves nothing.
    """
    wanted = os.environ.get(VARIABLE, "")
    if not wanted or _done:  # called before in this process, or in the one it was forked from
        return
    import msgspec

    from oortriage.gpu.card.emulate import emulating
    from oortriage.gpu.virtual.driver import Card

    card = msgspec.json.decode(wanted, type=Card)
    _playing.enter_context(emulating(card))
    _platform_answers(card.capability)
    _done.append(card.target.name)
    _log.info("oortriage: process %d plays %s with %d bytes a block", os.getpid(), card.target.name, card.limit_bytes)


def _platform_answers(capability: tuple[int, int]) -> None:
    """Let vLLM's platform, which asks NVML and not torch, answer with the played capability."""
    from vllm.platforms import current_platform
    from vllm.platforms.interface import DeviceCapability

    played = DeviceCapability(*capability)

    def get_device_capability(_cls: Any, device_id: int = 0) -> Any:  # noqa: ARG001 (named as vLLM names it)
        return played

    platform: Any = current_platform
    type(platform).get_device_capability = classmethod(get_device_capability)
