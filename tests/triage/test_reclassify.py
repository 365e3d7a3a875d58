"""A bare CUDA error under frames that page-lock host memory is the host's refusal, not the card's."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer
from tests.triage.messages import PLAIN, traceback

BARE = "RuntimeError: CUDA error: out of memory"
PINNING = ("/usr/lib/python3.12/site-packages/torch/utils/data/_utils/pin_memory.py", "pin_memory")


def test_a_bare_error_while_pinning_is_host_memory(analyzer: Analyzer) -> None:
    diagnosis = analyzer.text(traceback(BARE, ("/app/train.py", "main"), PINNING))
    assert (diagnosis.resource, diagnosis.cause) == ("host_memory", "pinned_memory")
    assert "device_memory" in {one.resource for one in diagnosis.ruled_out}


def test_the_source_of_a_frame_says_it_as_well(analyzer: Analyzer) -> None:
    text = traceback(BARE, ("/app/train.py", "main"), source="batch = batch.pin_memory()")
    assert analyzer.text(text).resource == "host_memory"


@pytest.mark.parametrize(
    "text",
    [
        traceback(BARE, ("/app/train.py", "main")),
        # The card's own figures speak before any frame.
        traceback(PLAIN, ("/app/train.py", "main"), PINNING),
        # Pinned long before, far out in the stack.
        traceback(BARE, PINNING, *[("/app/model.py", f"layer_{number}") for number in range(6)]),
    ],
    ids=["other frames", "figures", "outer frame"],
)
def test_what_does_not_happen_while_pinning_stays_device_memory(text: str, analyzer: Analyzer) -> None:
    assert analyzer.text(text).resource == "device_memory"
