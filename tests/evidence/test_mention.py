"""Printed messages against sentences about them."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB"
OOR = "out of resource: shared memory, Required: 81920, Hardware limit: 65536"


@pytest.mark.parametrize(
    "text",
    [
        f"torch.OutOfMemoryError: {OOM}. GPU 0 has a total capacity of 15.78 GiB of which 1.50 GiB is free.",
        f"triton.runtime.errors.OutOfResources: {OOR}",
        f"Error while generating image: {OOM}. GPU 0 has a total capacity of 15.78 GiB of which 1.50 GiB is free.",
        f'ErrorMessage "torch.OutOfMemoryError: {OOM}. GPU 3 has a total capacity of 22.20 GiB"',
        f'ts=2026-02-01T10:00:04Z level=error msg="inference failed" err="{OOM}. GPU 0 has a total capacity"',
        f"ERROR 10-11 12:27:29 engine.py:157] OutOfMemoryError('{OOM}. GPU 0 has a total capacity of 79.15 GiB')",
        f"- triton.runtime.errors.OutOfResources: {OOR}",
        f"| sm_75 | `triton.runtime.errors.OutOfResources: {OOR}` |",
        f"!!! Exception during processing !!! {OOM}. GPU 0 has a total capacity of 15.78 GiB",
    ],
)
def test_a_printed_message_is_a_failure(text: str, analyzer: Analyzer) -> None:
    assert analyzer.text(text).resource in ("device_memory", "shared_memory")


@pytest.mark.parametrize(
    "text",
    [
        f"On Turing cards some kernels may raise `OutOfResources: {OOR}`, which is no lack of VRAM.",
        f"The reason you get `torch.OutOfMemoryError: {OOM}` is almost never a bug in the library.",
        f'- fix: "RuntimeError: {OOM}" on resume, caused by loading the checkpoint to GPU 0 (#820)',
        f"9f1b2aa fix OOM: free logits before sampling (RuntimeError: {OOM})",
        f'  memory: 64Gi   # avoids "{OOM}" on A10',
        f"## Troubleshooting\n\n### Out of memory\n\n```\ntorch.OutOfMemoryError: {OOM}\n```\n\nLower the batch size.",
        f'usage: tool [-h]\n\noptions:\n  --reserve GIB  too small a value ends in\n                 "{OOM}"',
        f"| 1.4.1 | the message `{OOR}` now explains itself |\n|---|---|",
    ],
)
def test_a_sentence_about_a_message_is_none(text: str, analyzer: Analyzer) -> None:
    assert analyzer.text(text).resource == "none"
