"""The library's word on health and ways: any answer may be odd, none becomes an exception."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.doctor.outside import Ran, Unread
from oortriage.doctor.reading import Health, Reading, read, short_bus, told
from tests.doctor.made import h100
from tests.gpu.fake_nvml import FakeNvml, NVMLError, card, cut


def health(*cards: Any, **answers: Any) -> Health:
    nvml = FakeNvml(*(cards or (h100(),)), **answers)
    found = read(nvml, environment={}, place="machine")
    assert nvml.open == 0
    return found.health[0]


def test_a_healthy_card() -> None:
    found = health()
    assert (found.bus, found.persistence, found.compute_mode, found.ecc) == ("0000:0b:00", True, "default", True)
    assert (found.remapped, found.remap_pending, found.remap_failed, found.retired) == ((0, 0), False, False, None)


def test_an_old_module_and_card_tell_little() -> None:
    assert health(card()) == Health(0)


def test_volatile_and_aggregate_are_not_mixed_up() -> None:
    class Counting(FakeNvml):
        def nvmlDeviceGetTotalEccErrors(self, _handle: Any, kind: int, counter: int) -> int:  # noqa: N802 (NVML's name)
            return 10 * kind + counter

    found = read(Counting(h100()), environment={}, place="machine").health[0]
    assert (found.corrected_volatile, found.corrected_aggregate) == (0, 1)
    assert (found.uncorrected_volatile, found.uncorrected_aggregate) == (10, 11)


def test_what_the_driver_keeps_is_asked_in_the_newer_form() -> None:
    class Second(FakeNvml):
        def nvmlDeviceGetMemoryInfo(self, _handle: Any, version: int = 0) -> Any:  # noqa: N802 (NVML's name)
            return SimpleNamespace(total=80, used=1, free=79, **({"reserved": 7} if version == 0x02000028 else {}))

    assert read(Second(h100()), environment={}, place="machine").health[0].reserved_bytes == 7


class FabricInfo(ctypes.Structure):
    _fields_: ClassVar = [
        ("uuid", ctypes.c_uint8 * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint32),
        ("state", ctypes.c_uint),
    ]


def test_the_fabric() -> None:
    """The module hands on what it gets: the library must get an address."""

    class Switched(FakeNvml):
        c_nvmlGpuFabricInfo_t = FabricInfo  # noqa: N815 (NVML's name)

        def nvmlDeviceGetGpuFabricInfo(self, _handle: Any, address: Any) -> None:  # noqa: N802
            address._obj.state = 2

    assert read(Switched(h100()), environment={}, place="machine").health[0].fabric == "in_progress"


def test_what_is_known_is_told_before_more_is_asked() -> None:
    told_: list[Reading] = []
    whole = read(FakeNvml(h100(), h100(1)), environment={}, place="machine", so_far=told_.append)
    assert [(len(one.devices), len(one.health), len(one.peers)) for one in told_[:2]] == [(2, 0, 0), (2, 2, 2)]
    known = [
        sum(value is not None for one in each.health for value in msgspec.to_builtins(one).values()) for each in told_
    ]
    assert known == sorted(known)
    assert known[-1] > known[1]
    assert all(one.devices == whole.devices for one in told_)


class TestTheChildsLines:
    LINE = msgspec.json.encode(read(FakeNvml(h100()), environment={}, place="machine")).decode()

    def test_the_last_whole_line_counts(self) -> None:
        err = 'Fatal Python error: Segmentation fault\n\n  File "pynvml.py", line 6 in nvmlDeviceGetGpuFabricInfo\n'
        found = told(Ran(-11, f"{self.LINE}\n{self.LINE[:40]}", err), 9)
        assert found.unavailable is None
        assert [one.name for one in found.devices] == ["NVIDIA H100 80GB HBM3"]
        assert found.broken.endswith("ended with signal 11 in nvmlDeviceGetGpuFabricInfo")

    def test_a_library_that_hangs_half_way(self) -> None:
        found = told(Unread("python did not end within 9 s", "timeout", f"{self.LINE}\n"), 9)
        assert len(found.devices) == 1
        assert found.broken == "NVIDIA's management library did not answer within 9 s"

    def test_nothing_at_all(self) -> None:
        found = told(Ran(1, "", "Traceback ...\nImportError: no such thing\n"), 9)
        assert found.unavailable is not None
        assert found.unavailable.reason.endswith("ended with exit code 1: ImportError: no such thing")

    def test_all_well(self) -> None:
        assert told(Ran(0, f"{self.LINE}\n", "a warning"), 9).broken == ""


def test_ways_between_three_cards() -> None:
    cards = [h100(number, P2PStatus=status) for number, status in enumerate((0, 1, 5))]
    found = read(FakeNvml(*cards), environment={}, place="machine").peers
    assert [(one.first, one.second, one.read) for one in found] == [
        (0, 1, "OK"), (0, 2, "OK"), (1, 0, "CNS"), (1, 2, "CNS"), (2, 0, "NS"), (2, 1, "NS"),
    ]  # fmt: skip


def test_a_card_that_is_lost_does_not_take_the_others() -> None:
    found = read(FakeNvml(h100(), NVMLError(15, "GPU is lost")), environment={}, place="machine")
    assert [one.index for one in found.health] == [0]
    assert len(found.devices) == 2


@settings(max_examples=30)
@given(st.fixed_dictionaries({
    name: st.one_of(st.none(), st.integers(-5, 2**64), st.text(max_size=3), st.lists(st.integers(-1, 5), max_size=5))
    for name in ("PersistenceMode", "ComputeMode", "EccMode", "TotalEccErrors", "RemappedRows", "RetiredPages",
                 "RetiredPagesPendingStatus", "MigMode", "PciInfo", "P2PStatus", "MPSComputeRunningProcesses")
}))  # fmt: skip
def test_any_answer_is_a_value(answers: dict[str, Any]) -> None:
    found = read(FakeNvml({**cut(), **answers}, h100(1)), environment={}, place="machine")
    assert len(found.health) == 2


@pytest.mark.parametrize(
    ("text", "bus"),
    [
        ("00000000:0B:00.0", "0000:0b:00"),
        ("0000:0b:00", "0000:0b:00"),
        ("0b:00.0", "0000:0b:00"),
        ("00010000:3D:00.0", "0000:3d:00"),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_addresses_as_kernel_messages_write_them(text: str, bus: str) -> None:
    assert short_bus(text) == bus
