"""Rules of last resort: they speak where an error names a shortage that no other rule knows."""

from __future__ import annotations

import pytest

from oortriage.api import Analyzer


@pytest.mark.parametrize(
    ("log", "resource", "code"),
    [
        ("ERROR: Not enough free VRAM for the model", "device_memory", "GM101"),
        ("Error: insufficient system memory for the offload buffer", "host_memory", "GM102"),
        # A wrapper on the same line is no better answer than the guess.
        (
            (
                "terminate called after throwing an instance of 'std::runtime_error'\n"
                "  what():  CUDA out of device memory in the frobnicator"
            ),
            "device_memory",
            "GM101",
        ),
        # A guess never stands beside a message that is known.
        (
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                "7.79 GiB of which 1.00 GiB is free."
            ),
            "device_memory",
            "DM101",
        ),
    ],
)
def test_a_guess_stands_where_nothing_better_does(analyzer: Analyzer, log: str, resource: str, code: str) -> None:
    diagnosis = analyzer.text(log)
    assert (diagnosis.resource, diagnosis.code) == (resource, code)


@pytest.mark.parametrize(
    "log",
    [
        "ImportError: /usr/lib/libgomp.so.1: cannot allocate memory in static TLS block",
        "INFO out of GPU memory guard enabled",
    ],
)
def test_a_line_that_tells_of_no_shortage_is_none(analyzer: Analyzer, log: str) -> None:
    assert analyzer.text(log).resource == "none"
