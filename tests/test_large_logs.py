"""A failure in the middle of a log too large to be kept whole gets the verdict it gets alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from oortriage.api import Analyzer
from oortriage.intake.source import Notes, read_chunks
from oortriage.intake.window import WHOLE
from oortriage.scoring.case import LabelledCase, load_cases
from tests.conftest import ROOT

# Every seventh case; issue texts are left out, whose structure the padding would hide.
CASES = [case for case in load_cases(ROOT / "fixtures")[::7] if not case.log.endswith(".md")]


@pytest.fixture(scope="module")
def padding() -> bytes:
    rng = random.Random(3)
    lines, size = [], 0
    while size < WHOLE:
        clock = f"2026-11-29T20:{rng.randint(10, 59)}:{rng.randint(10, 59)}Z"
        lines.append(f"{clock} worker heartbeat {rng.getrandbits(64):016x} queue {rng.randint(0, 99)} ok\n")
        size += len(lines[-1])
    return "".join(lines).encode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_verdict_is_the_same_inside_a_large_log(case: LabelledCase, padding: bytes, analyzer: Analyzer) -> None:
    data = b"".join(read_chunks(case.path, Notes()))
    data = data if data.endswith(b"\n") else data + b"\n"
    alone = analyzer.text(data)
    inside = analyzer.text(padding + data + padding)
    assert (inside.resource, inside.code, inside.status) == (alone.resource, alone.code, alone.status)
    if alone.resource not in ("none", "undetermined"):
        assert inside.evidence[0].line == alone.evidence[0].line + padding.count(b"\n")
        assert inside.numbers == alone.numbers


def test_a_file_of_many_megabytes_keeps_little_in_memory(tmp_path: Path, padding: bytes) -> None:
    """Peak memory of the process that analyzes 60 MB stays far below the size of the log."""
    import subprocess
    import sys

    path = tmp_path / "large.log"
    failure = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total capacity; "
    failure += b"6.10 GiB already allocated; 1.00 GiB free; 6.20 GiB reserved in total by PyTorch)\n"
    with path.open("wb") as sink:
        for _ in range(55):
            sink.write(padding)
        sink.write(failure)
    assert path.stat().st_size > 55_000_000
    code = (
        "import sys; from oortriage.api import Analyzer; "
        "d = Analyzer().file(sys.argv[1]); "
        # Not getrusage: its peak is at least the parent's at the time of the fork.
        "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')); "
        "print(d.resource, d.evidence[0].line, peak)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120, check=True
    )
    found, line, peak = done.stdout.split()
    assert found == "device_memory"
    assert int(line) == 55 * padding.count(b"\n") + 1
    assert int(peak) < 150 * 1024
