"""The real Python module against a library built here: what ctypes hands over must be what a library takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oortriage.doctor.machine import Machine
from oortriage.doctor.reading import Peer, Reading

SOURCE = Path(__file__).with_name("nvml_stub.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Build the library, and let the child find it first."""
    if not COMPILER or sys.platform != "linux":
        pytest.skip("no C compiler here")

    def ask(*flags: str) -> Reading:
        built = [COMPILER, "-shared", "-fPIC", "-w", *flags, "-o", str(tmp_path / "libnvidia-ml.so.1"), str(SOURCE)]
        subprocess.run(built, check=True, timeout=60)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        return Machine().nvml

    return ask


def test_every_answer_arrives(asked) -> None:
    found = asked()
    assert (found.unavailable, found.broken) == (None, "")
    assert (found.driver, found.ceiling) == ("580.159.04", "13.0")
    assert [one.name for one in found.devices] == ["NVIDIA H200", "NVIDIA H200"]
    one = found.health[0]
    assert (one.bus, one.reserved_bytes, one.persistence, one.compute_mode) == ("0000:0b:00", 1 << 29, True, "default")
    assert (one.ecc, one.uncorrected_volatile, one.uncorrected_aggregate) == (True, 0, 3)
    assert (one.remapped, one.remap_pending, one.retired, one.fabric) == ((1, 2), False, None, "completed")
    assert found.peers[0] == Peer(0, 1, "CNS", "OK")


def test_a_library_that_falls_over_its_last_question(asked) -> None:
    found = asked("-DFALL")
    assert found.unavailable is None
    assert "ended with signal 11 in nvmlDeviceGetGpuFabricInfo" in found.broken
    assert len(found.health) == len(found.peers) == 2
