"""Device facts through a stand-in for NVML: every answer may be odd, none becomes an exception."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.gpu.device import Device, devices
from oortriage.gpu.nvml_trouble import Unavailable, this_place
from oortriage.gpu.visible_devices import Candidate, visible
from oortriage.report.device import device_report
from tests.gpu.fake_nvml import GIB, FakeNvml, NVMLError, card, cut, memory, part, process


def read(nvml: Any, environment: dict[str, str] | None = None, **given_: Any) -> list[Device]:
    found = devices(nvml, environment=environment or {}, place="machine", **given_)
    assert isinstance(found, list)
    assert nvml.open == 0
    return found


def refused(nvml: Any, place: Any = "machine") -> Unavailable:
    found = devices(nvml, environment={}, place=place)
    assert isinstance(found, Unavailable)
    assert nvml.open == 0
    return found


class TestOneCard:
    def test_its_facts(self) -> None:
        (one,) = read(FakeNvml(card()))
        assert (one.index, one.uuid, one.name) == (0, "GPU-00000000-aaaa", "Tesla T4")
        assert (one.capability, one.target) == ((7, 5), "sm_75")
        assert (one.total_bytes, one.used_bytes, one.free_bytes) == (16 * GIB, GIB, 15 * GIB)
        assert (one.driver, one.cuda) == ("570.86.15", "12.8")
        assert (one.mig, one.instances, one.problems) == (None, (), ())
        assert one.cuda_index == 0

    def test_text_as_bytes_of_old_modules(self) -> None:
        (one,) = read(FakeNvml(card(Name=b"Tesla T4", UUID=b"GPU-1"), nvmlSystemGetDriverVersion=b"418.1"))
        assert (one.name, one.uuid, one.driver) == ("Tesla T4", "GPU-1", "418.1")

    def test_a_card_that_shares_the_hosts_memory_does_not_tell_its_own(self) -> None:
        (one,) = read(FakeNvml(card(MemoryInfo=NVMLError(3))))
        assert (one.total_bytes, one.problems) == (None, ())
        assert "not told by the driver" in device_report([one], "text")

    def test_what_is_refused_is_said(self) -> None:
        (one,) = read(FakeNvml(card(MemoryInfo=NVMLError(4, "Insufficient Permissions"))))
        assert one.problems == ("nvmlDeviceGetMemoryInfo: Insufficient Permissions",)

    def test_an_old_module_without_a_function(self) -> None:
        answers = card()
        del answers["MigMode"]
        (one,) = read(FakeNvml(answers))
        assert one.mig is None
        assert one.problems

    def test_mig_off(self) -> None:
        (one,) = read(FakeNvml(card(MigMode=[0, 0])))
        assert (one.mig, one.instances, one.cuda_index) == (False, (), 0)


class TestProcesses:
    def test_the_largest_first_and_our_own_marked(self) -> None:
        nvml = FakeNvml(card(ComputeRunningProcesses=[process(11, GIB), process(12, 3 * GIB)]))
        nvml.names = {11: "/usr/bin/python3.11 -m secret", 12: b"/opt/vllm/bin/python"}
        (one,) = read(nvml, own_pid=11)
        assert [(p.pid, p.name, p.used_bytes, p.own) for p in one.processes] == [
            (12, "python", 3 * GIB, False),
            (11, "python3.11", GIB, True),
        ]

    def test_one_that_computes_and_draws_is_named_once(self) -> None:
        nvml = FakeNvml(card(ComputeRunningProcesses=[process(5, 7)], GraphicsRunningProcesses=[process(5, 9)]))
        (one,) = read(nvml)
        assert [(p.pid, p.used_bytes) for p in one.processes] == [(5, 9)]

    @pytest.mark.parametrize("used", [None, (1 << 64) - 1, -1, "much"])
    def test_use_that_is_not_told(self, used: Any) -> None:
        (one,) = read(FakeNvml(card(ComputeRunningProcesses=[process(999_999_999, used)])))
        assert one.processes[0].used_bytes is None
        assert "unknown" in device_report([one], "text")

    def test_a_name_that_may_not_be_read_is_empty(self) -> None:
        (one,) = read(FakeNvml(card(ComputeRunningProcesses=[process(999_999_999, 1)])))
        assert one.processes[0].name == ""

    def test_a_name_cannot_act_on_the_terminal(self) -> None:
        nvml = FakeNvml(card(ComputeRunningProcesses=[process(999_999_999, 1)]))
        nvml.names = {999_999_999: "/x/\x1b[31mred"}
        assert "\x1b" not in device_report(read(nvml), "text")


class TestMig:
    def test_instances_and_their_free_places(self) -> None:
        (one,) = read(FakeNvml(cut()))
        assert one.mig is True
        assert [(p.uuid, p.gpu_instance, p.compute_instance, p.total_bytes) for p in one.instances] == [
            ("MIG-00000000-bbbb", 7, 0, 5 * GIB),
            ("MIG-00000001-bbbb", 8, 0, 5 * GIB),
        ]
        assert one.cuda_index is None
        assert [p.cuda_index for p in one.instances] == [0, None]

    def test_one_chosen_by_uuid(self) -> None:
        (one,) = read(FakeNvml(cut()), {"CUDA_VISIBLE_DEVICES": "MIG-00000001"})
        assert [p.cuda_index for p in one.instances] == [None, 0]

    def test_one_chosen_by_its_older_name(self) -> None:
        (one,) = read(FakeNvml(cut()), {"CUDA_VISIBLE_DEVICES": "MIG-GPU-00000000-aaaa/8/0"})
        assert [p.cuda_index for p in one.instances] == [None, 0]

    def test_the_card_chosen_means_its_first_instance(self) -> None:
        found = read(FakeNvml(card(0), cut(1)), {"CUDA_VISIBLE_DEVICES": "1"})
        assert found[0].cuda_index is None
        assert [p.cuda_index for p in found[1].instances] == [0, None]
        assert "seen by CUDA through a MIG instance" in device_report(found, "text")
        assert any("MIG" in note for note in found[0].notes)

    def test_instances_that_cannot_be_asked(self) -> None:
        broken = card(MigMode=[1, 1], parts=[part(0, MemoryInfo=NVMLError(4), UUID=NVMLError(999))])
        (one,) = read(FakeNvml(broken))
        assert one.instances[0].uuid == ""
        assert len(one.problems) == 2


class TestVisible:
    CARDS = (Candidate("GPU-aa11"), Candidate("GPU-aa22"), Candidate("GPU-bb33"))

    @pytest.mark.parametrize(
        ("text", "seen"),
        [
            ("0", ["GPU-aa11"]),
            ("2,0", ["GPU-bb33", "GPU-aa11"]),
            (" 1 , 2 ", ["GPU-aa22", "GPU-bb33"]),
            ("GPU-bb", ["GPU-bb33"]),
            ("GPU-aa", []),
            ("GPU-aa22,0", ["GPU-aa22", "GPU-aa11"]),
            ("0,9,1", ["GPU-aa11"]),
            ("0,-1,1", ["GPU-aa11"]),
            ("0,,1", ["GPU-aa11"]),
            ("0,x,1", ["GPU-aa11"]),
            ("0,0", []),
            ("", []),
            ("-1", []),
            ("NoDevFiles", []),
            ("1st", ["GPU-aa22"]),
            ("99999999999999999999", []),
            ("MIG-none", []),
        ],
    )
    def test_read_as_cuda_reads_it(self, text: str, seen: list[str]) -> None:
        found = visible({"CUDA_VISIBLE_DEVICES": text}, self.CARDS)
        assert list(found.uuids or ()) == seen
        assert found.uuids is not None
        assert found.setting == f"CUDA_VISIBLE_DEVICES={text}"

    def test_nothing_set(self) -> None:
        assert visible({}, self.CARDS).uuids is None

    @pytest.mark.parametrize(("text", "said"), [("0,9", "9 names no GPU"), ("0,0", "a second time"), (",", "an empty")])
    def test_what_is_odd_is_said(self, text: str, said: str) -> None:
        assert said in visible({"CUDA_VISIBLE_DEVICES": text}, self.CARDS).notes[0]

    @given(st.text(alphabet="0123,-GPUMIGab ", max_size=20))
    def test_any_text_is_an_answer(self, text: str) -> None:
        found = visible({"CUDA_VISIBLE_DEVICES": text}, self.CARDS)
        assert found.uuids is not None
        assert len(set(found.uuids)) == len(found.uuids)

    def test_numbers_on_the_devices(self) -> None:
        found = read(FakeNvml(card(0), card(1), card(2)), {"CUDA_VISIBLE_DEVICES": "2,0"})
        assert [one.cuda_index for one in found] == [1, None, 0]
        assert {one.selection for one in found} == {"CUDA_VISIBLE_DEVICES=2,0"}
        assert "seen by CUDA: 2 of 3" in device_report(found, "text")

    def test_cards_of_two_kinds_may_be_counted_otherwise(self) -> None:
        two = FakeNvml(card(0), card(1, Name="NVIDIA H200"))
        assert any("PCI_BUS_ID" in note for note in read(two)[0].notes)
        assert read(two, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})[0].notes == ()


class TestUnavailable:
    @pytest.mark.parametrize(
        ("code", "kind"),
        [
            (4, "no_permission"),
            (9, "no_driver"),
            (12, "no_library"),
            (15, "gpu_lost"),
            (16, "gpu_lost"),
            (17, "no_permission"),
            (18, "mismatch"),
            (28, "no_device"),
            (999, "other"),
        ],
    )
    @pytest.mark.parametrize("place", ["machine", "container", "wsl2"])
    def test_each_failure_has_a_remedy(self, code: int, kind: str, place: Any) -> None:
        found = refused(FakeNvml(nvmlInit=NVMLError(code)), place)
        assert found.kind == kind
        assert found.reason
        assert found.remedy

    def test_the_remedy_is_of_the_place(self) -> None:
        def remedy(place: Any) -> str:
            return refused(FakeNvml(nvmlInit=NVMLError(12)), place).remedy

        assert "docker run --gpus" in remedy("container")
        assert "driver of Windows" in remedy("wsl2")
        assert "libnvidia-ml.so.1" in remedy("machine")

    def test_no_module(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)
        monkeypatch.setattr("oortriage.gpu.nvml_trouble.on_macos", lambda: False)
        found = devices(environment={}, place="machine")
        assert isinstance(found, Unavailable)
        assert (found.kind, "nvidia-ml-py" in found.remedy) == ("no_module", True)

    def test_a_mac(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("oortriage.gpu.nvml_trouble.on_macos", lambda: True)
        found = devices(environment={}, place="machine")
        assert isinstance(found, Unavailable)
        assert found.kind == "unsupported"

    @pytest.mark.parametrize("count", [0, -1, None, "two"])
    def test_a_driver_without_a_card(self, count: Any) -> None:
        assert refused(FakeNvml(nvmlDeviceGetCount=count)).kind == "no_device"

    def test_the_only_card_is_lost(self) -> None:
        found = refused(FakeNvml(NVMLError(15, "GPU is lost")))
        assert found.kind == "gpu_lost"
        assert "Xid" in found.remedy

    def test_one_of_two_cards_is_lost(self) -> None:
        lost, good = read(FakeNvml(NVMLError(15, "GPU is lost"), card(1)))
        assert lost.problems
        assert lost.cuda_index is None
        assert (good.name, good.problems) == ("Tesla T4", ())
        assert "not read: a GPU has fallen off the bus" in device_report([lost, good], "text")

    def test_an_exception_without_a_text(self) -> None:
        class MuteError(NVMLError):
            def __str__(self) -> str:
                raise NVMLError(1)

        found = refused(FakeNvml(nvmlInit=MuteError(999)))
        assert "MuteError" in found.reason

    def test_letting_go_may_fail(self) -> None:
        nvml = FakeNvml(card(), nvmlShutdown=NVMLError(1))
        assert isinstance(devices(nvml, environment={}, place="machine"), list)

    def test_json_of_a_refusal(self) -> None:
        written = json.loads(device_report(Unavailable("why", "what", "no_driver"), "json"))
        assert written["unavailable"] == {"reason": "why", "remedy": "what", "kind": "no_driver"}


ODD = st.one_of(
    st.none(),
    st.integers(-2, 1 << 65),
    st.floats(allow_nan=True),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.booleans(),
    st.lists(st.integers(-1, 1 << 40), max_size=3),
    st.sampled_from([NVMLError(code) for code in (3, 4, 6, 15, 18, 999)]),
    st.builds(memory, st.integers(-1, 1 << 65), st.none(), st.text(max_size=3)),
    st.just([process(1, None), process("x", 3), object()]),
    st.just(RuntimeError("odd")),
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["UUID", "Name", "CudaComputeCapability", "MemoryInfo", "ComputeRunningProcesses",
             "GraphicsRunningProcesses", "MigMode"]
        ),
        ODD,
    ),
    st.dictionaries(
        st.sampled_from(["nvmlDeviceGetCount", "nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"]), ODD
    ),
)  # fmt: skip
def test_no_answer_is_an_exception(answers: dict[str, Any], system: dict[str, Any]) -> None:
    found = devices(FakeNvml(card(**answers), **system), environment={}, place="machine")
    for name in ("text", "json"):
        assert device_report(found, name)


def test_places(tmp_path: Path) -> None:
    assert this_place(tmp_path) == "machine"
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "1" / "cgroup").write_text("0::/kubepods/besteffort\n")
    assert this_place(tmp_path) == "container"
    (tmp_path / "proc" / "1" / "cgroup").write_text("0::/\n")
    (tmp_path / ".dockerenv").touch()
    assert this_place(tmp_path) == "container"
    (tmp_path / "proc" / "version").write_text("Linux version 5.15.0-microsoft-standard-WSL2")
    assert this_place(tmp_path) == "wsl2"
