"""Whole machines, as people have them: what is said of each, and what cannot be looked at."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest

from oortriage.doctor.machine import Entry
from oortriage.doctor.outside import Ran, Unread
from oortriage.gpu.nvml_trouble import Place
from oortriage.report.doctor import doctor_report, summary
from tests.doctor.made import (
    ARCHITECTURES,
    DENIED,
    LIBCUDA,
    NODES,
    Made,
    codes,
    h100,
    kernel,
    reading,
    refused,
    software,
    whole,
)
from tests.gpu.fake_nvml import GIB, NVMLError, card, cut, memory, part, process

T4 = card(MemoryInfo=memory(15 * GIB, 0, 15 * GIB), PersistenceMode=0, EccMode=[1, 1], TotalEccErrors=0, ComputeMode=0)

#: vLLM 0.22.1 on any Turing card.
TURING_NOTES = ("DR221", "DR222", "DR223")


class TestT4:
    @pytest.mark.parametrize(
        ("version", "backend"),
        [
            ("0.6.3.post1", "XFORMERS (engine V0)"),
            ("0.9.2", "V0 takes over"),
            ("0.11.0", "FLEX_ATTENTION"),
            ("0.17.1", "FLASHINFER"),
            ("0.33.0", "TRITON_ATTN"),
            ("0.10.1", ""),
            ("0.99.0", ""),
        ],
    )
    def test_which_attention_it_gets(self, version: str, backend: str) -> None:
        found = whole(Made(nvml=reading(T4), installed=software(versions={"vllm": version}, requires={})))
        told = [one.message for one in found.findings if one.code == "DR222"]
        assert bool(told) == bool(backend)
        assert all(backend in one for one in told)
        assert backend or any("not among the releases" in one.reason for one in found.not_checked)

    def test_an_old_driver_and_a_new_torch(self) -> None:
        machine = Made(nvml=reading(T4, driver="535.183.01", cuda=12020))
        found = codes(machine)
        assert set(found) == {"DR201", "DR303", *TURING_NOTES}
        assert (
            "built with CUDA 13.0; driver 535.183.01 runs CUDA up to 12.2; CUDA 13.x needs driver 580" in found["DR201"]
        )

    def test_a_compat_package_helps_where_the_card_may_have_it(self) -> None:
        library = {
            **NODES,
            "/usr/local/cuda-13.0/compat/libcuda.so.1": Entry("file", mine=True, target="/x/libcuda.so.580.82"),
        }
        old = {"driver": "535.183.01", "cuda": 12020}
        (one,) = (one for one in whole(Made(nvml=reading(T4, **old), entries=library)).findings if one.code == "DR201")
        assert "LD_LIBRARY_PATH=/usr/local/cuda-13.0/compat" in one.remedy
        (one,) = (one for one in whole(Made(nvml=reading(T4, **old))).findings if one.code == "DR201")
        assert "the package cuda-compat-13-0" in one.remedy
        home = {**T4, "Name": "NVIDIA GeForce RTX 2080"}
        (one,) = (one for one in whole(Made(nvml=reading(home, **old))).findings if one.code == "DR201")
        assert "compat" not in one.remedy

    def test_a_newer_minor_release_runs(self) -> None:
        build = software("2.8.0+cu128", "12.8", versions={"triton": "3.4.0"}, requires={})
        found = codes(Made(nvml=reading(T4, driver="535.183.01", cuda=12020), installed=build))
        assert set(found) == {"DR202", "DR303", *TURING_NOTES}

    def test_an_older_runtime_runs_on_a_newer_driver(self) -> None:
        build = software("2.4.0+cu121", "12.1", versions={"triton": "3.0.0"}, requires={})
        assert set(codes(Made(nvml=reading(T4), installed=build))) == {"DR303", *TURING_NOTES}

    def test_its_blocks_have_64_kib(self) -> None:
        facts = whole(Made(nvml=reading(T4))).facts["cards"]["cards"][0]
        assert (facts["capability"], facts["shared_memory_per_block_bytes"]) == ("7.5", 65536)

    def test_where_the_files_do_not_tell_torch_is_asked(self) -> None:
        build = software(architectures=())
        found = whole(Made(nvml=reading(T4), installed=build, asked=("sm_80",)))
        assert found.findings[0].code == "DR205"
        assert found.facts["runtime"]["architectures"] == ["sm_80"]

    def test_torch_does_not_tell_either(self) -> None:
        found = whole(Made(nvml=reading(T4), installed=software(architectures=())))
        assert any("torch: not asked" in one.reason for one in found.not_checked)

    def test_a_build_that_left_its_generation_behind(self) -> None:
        build = software(architectures=("sm_80", "sm_86", "sm_90"))
        found = codes(Made(nvml=reading(T4), installed=build))
        assert "Tesla T4 has capability 7.5" in found["DR205"]


class TestA10WithMps:
    A10 = h100(Name="NVIDIA A10", CudaComputeCapability=(8, 6), MigMode=NVMLError(3))
    DAEMON: ClassVar = {"/tmp/nvidia-mps/control": "x", "/proc/77/comm": "nvidia-cuda-mps\n"}

    def test_a_limit_for_each_client_is_well(self) -> None:
        environment = {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=10G, 1=512MB", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25"}
        assert codes(Made(nvml=reading(self.A10), files=self.DAEMON, environment=environment)) == {}

    def test_the_folder_in_a_container_that_was_not_mounted(self) -> None:
        machine = Made(
            nvml=reading(self.A10), place="container", environment={"CUDA_MPS_PIPE_DIRECTORY": "/mps", "X": "1"}
        )
        assert codes(machine) == {"DR351": "/mps is not there"}

    def test_in_a_container_the_daemon_runs_outside(self) -> None:
        files = {"/mps/control": "x", "/proc/1/comm": "python\n"}
        machine = Made(
            nvml=reading(self.A10), place="container", files=files, environment={"CUDA_MPS_PIPE_DIRECTORY": "/mps"}
        )
        assert codes(machine) == {}


class TestMig:
    def test_one_of_two_instances_is_seen(self) -> None:
        parts = [
            part(number, Name="NVIDIA H100 MIG 3g.40gb", MemoryInfo=memory(40 * GIB, 0, 40 * GIB)) for number in (1, 2)
        ]
        found = codes(Made(nvml=reading(h100(MigMode=[1, 1], parts=parts))))
        assert found == {
            "DR342": (
                "NVIDIA H100 80GB HBM3: 2 instances; a CUDA program started here sees NVIDIA H100 MIG 3g.40gb of 40.00 GiB"
            )
        }

    def test_memory_of_the_instances_has_an_owner(self) -> None:
        parts = [part(1, MemoryInfo=memory(40 * GIB, 30 * GIB, 10 * GIB))]
        busy = h100(MigMode=[1, 1], parts=parts, MemoryInfo=memory(80 * GIB, 30 * GIB, 50 * GIB))
        assert codes(Made(nvml=reading(busy))) == {}

    def test_an_instance_named_that_is_gone(self) -> None:
        environment = {"CUDA_VISIBLE_DEVICES": "MIG-00000009-bbbb"}
        found = codes(
            Made(nvml=reading(cut(parts=1, MemoryInfo=memory(40 * GIB, 0, 40 * GIB))), environment=environment)
        )
        assert "0 cards left" in found["DR502"]


class TestTwoCards:
    @pytest.mark.parametrize(("status", "cell"), [(1, "CNS"), (2, "GNS"), (3, "TNS"), (4, "DR"), (5, "NS")])
    def test_without_peer_access(self, status: int, cell: str) -> None:
        found = codes(Made(nvml=reading(h100(P2PStatus=status), h100(1, P2PStatus=status))))
        assert set(found) == {"DR381"}
        assert found["DR381"].startswith(f"{cell} (")
        assert found["DR381"].endswith("GPU 0 and 1")

    def test_the_matrix_of_a_file(self) -> None:
        text = (
            "\tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\tCNS\n GPU1\tOK\tX\tCNS\n GPU2\tCNS\tCNS\tX\n\nLegend:\n\n  X    = Self\n"
        )
        machine = Made(topo=text)
        assert codes(machine) == {"DR381": "CNS (the chipset does not support it): GPU 0 and 2, GPU 1 and 2"}
        assert whole(machine).facts["peer"]["read_from"] == "file"

    def test_a_file_without_a_matrix(self) -> None:
        found = whole(Made(topo="nothing\n"))
        assert any(one.check == "peer" and "no matrix" in one.reason for one in found.not_checked)

    def test_a_list_that_ends_early(self) -> None:
        machine = Made(nvml=reading(h100(), h100(1)), environment={"CUDA_VISIBLE_DEVICES": "1,2,0"})
        assert codes(machine) == {"DR502": "it is '1,2,0': 2 names no GPU: the list ends there; 1 card left"}


class TestContainerWithoutPermission:
    MACHINE: ClassVar = {"entries": {"/dev/nvidiactl": DENIED, "/dev/nvidia0": DENIED}, "place": "container"}

    def test_it_is_said_once_by_the_driver_and_once_by_the_files(self) -> None:
        machine = Made(nvml=refused(4, "Insufficient Permissions", "container"), **self.MACHINE)  # type: ignore[arg-type]
        found = [one for one in whole(machine).findings if one.code == "DR103"]
        assert [one.subject for one in found] == ["device files", "driver"]
        assert "/dev/nvidiactl" in found[0].message
        assert "--gpus all" in found[1].remedy

    def test_what_needs_the_driver_is_not_checked_and_says_why(self) -> None:
        machine = Made(nvml=refused(4, "Insufficient Permissions", "container"), **self.MACHINE)  # type: ignore[arg-type]
        missed = {one.check: one.reason for one in whole(machine).not_checked}
        assert {"cards", "memory", "mig", "ecc", "peer", "runtime", "visible"} <= set(missed)
        assert "Insufficient Permissions" in missed["memory"]


class TestWsl:
    def test_the_driver_of_windows_is_well(self) -> None:
        files = {"/usr/lib/wsl/lib/libcuda.so.1": "x"}
        machine = Made(
            place="wsl2", files=files, entries={"/dev/dxg": Entry("device", mine=True, target="/dev/dxg")},
            environment={"LD_LIBRARY_PATH": "/usr/lib/wsl/lib"},
        )  # fmt: skip
        assert codes(machine) == {}

    def test_a_linux_driver_shadows_it(self) -> None:
        told = Ran(0, f"\tlibcuda.so.1 (libc6,x86-64) => {LIBCUDA}.1\n", "")
        machine = Made(place="wsl2", entries={"/dev/dxg": NODES["/dev/nvidia0"]}, commands={"ldconfig": told})
        assert set(codes(machine)) == {"DR110"}

    def test_no_driver_in_windows(self) -> None:
        machine = Made(nvml=refused(12, place="wsl2"), place="wsl2", entries={"/dev/dxg": NODES["/dev/nvidia0"]})
        (one,) = (one for one in whole(machine).findings if one.code == "DR101")
        assert "Windows" in one.remedy


class TestMismatch:
    def test_the_driver_was_updated_while_loaded(self) -> None:
        text = "Driver/library version mismatch"
        machine = Made(nvml=refused(18, text), files=kernel("570.86.15"))
        found = codes(machine)
        assert text in found["DR102"]
        assert "the kernel module is loaded" in found["DR102"]

    def test_libcuda_of_another_release_without_a_compat_folder(self) -> None:
        ampere = h100(Name="NVIDIA RTX A6000", CudaComputeCapability=(8, 6))
        entries = {**NODES, "/opt/lib/libcuda.so.1": Entry("file", mine=True, target="/opt/lib/libcuda.so.595.1")}
        machine = Made(
            nvml=reading(ampere),
            entries=entries,
            environment={"LD_LIBRARY_PATH": "/opt/lib"},
            files=kernel("580.95.05"),
        )
        assert codes(machine) == {"DR102": "libcuda is 595.1 (/opt/lib/libcuda.so.595.1), the driver 580.95.05"}


class TestCgroups:
    def test_the_tightest_limit_on_the_way_up_holds(self) -> None:
        files = {
            "/proc/self/cgroup": "0::/kubepods/pod1/box\n",
            "/sys/fs/cgroup/kubepods/pod1/box/memory.max": "max\n",
            "/sys/fs/cgroup/kubepods/pod1/box/memory.current": "1000\n",
            "/sys/fs/cgroup/kubepods/pod1/memory.max": f"{32 * GIB}\n",
            "/sys/fs/cgroup/kubepods/pod1/memory.current": f"{30 * GIB}\n",
            "/sys/fs/cgroup/kubepods/pod1/memory.events": "oom 1\noom_kill 1\n",
        }
        found = whole(Made(files=files))
        assert {one.code for one in found.findings} == {"DR411", "DR412", "DR413"}
        assert found.facts["cgroup"]["limit_bytes"] == 32 * GIB

    def test_file_pages_that_can_be_dropped_do_not_count(self) -> None:
        files = {
            "/proc/self/cgroup": "0::/\n",
            "/sys/fs/cgroup/memory.max": str(100 * GIB),
            "/sys/fs/cgroup/memory.current": str(99 * GIB),
            "/sys/fs/cgroup/memory.stat": f"anon 5\ninactive_file {60 * GIB}\n",
        }
        assert codes(Made(files=files)) == {}

    def test_version_one(self) -> None:
        root = "/sys/fs/cgroup/memory"
        files = {
            "/proc/self/cgroup": "12:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n",
            f"{root}/memory.limit_in_bytes": str(16 * GIB),
            f"{root}/memory.usage_in_bytes": str(GIB),
            f"{root}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        }
        found = whole(Made(files=files))
        assert found.facts["cgroup"]["version"] == 1
        assert {one.code for one in found.findings} == {"DR411", "DR413"}

    def test_no_limit_of_version_one(self) -> None:
        files = {
            "/proc/self/cgroup": "4:memory:/\n",
            "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
        }
        assert whole(Made(files=files)).facts["cgroup"]["limit_bytes"] is None

    def test_none_to_be_read(self) -> None:
        found = whole(Made(files={"/proc/self/cgroup": "0::/x\n"}))
        assert any(one.check == "cgroup" for one in found.not_checked)


class TestNoGpu:
    def none(self, **other: object) -> Made:
        return Made(nvml=refused(12), entries={}, installed=software("2.11.0+cpu", ""), **other)  # type: ignore[arg-type]

    def test_it_is_said_plainly_and_nothing_is_wrong(self) -> None:
        found = whole(self.none())
        assert found.exit_code == 0
        assert summary(found).startswith("No NVIDIA GPU here")
        assert summary(found).endswith("1 note.")

    def test_settings_are_checked_all_the_same(self) -> None:
        machine = self.none(environment={"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb=128"})
        (one,) = (one for one in whole(machine).findings if one.code == "DR513")
        assert "colon" in one.remedy

    def test_a_card_on_the_bus_makes_it_an_error(self) -> None:
        files = {
            "/sys/bus/pci/devices/0000:0b:00.0/vendor": "0x10de\n",
            "/sys/bus/pci/devices/0000:0b:00.0/class": "0x030200\n",
            "/sys/bus/pci/devices/0000:0b:00.1/vendor": "0x10de\n",
            "/sys/bus/pci/devices/0000:0b:00.1/class": "0x040300\n",
        }
        found = codes(self.none(files=files))
        assert "1 NVIDIA display or 3D controller on the PCI bus" in found["DR101"]

    def test_no_torch_either(self) -> None:
        bare = msgspec.structs.replace(software(), torch=None, versions={}, requires={})
        found = whole(Made(nvml=refused(12), entries={}, installed=bare))
        missed = {one.what: one.reason for one in found.not_checked}
        assert missed["torch's build"] == "torch is not installed in this environment"
        assert "names another" in missed["versions of the packages, and what they ask of each other"]

    def test_an_interpreter_that_does_not_answer(self) -> None:
        found = whole(Made(installed=Unread("python cannot be run: Exec format error")))
        assert sum("Exec format error" in one.reason for one in found.not_checked) == 3
        assert found.findings == ()


class TestMemory:
    def test_a_server_that_runs_already(self) -> None:
        busy = h100(MemoryInfo=memory(80 * GIB, 72 * GIB, 8 * GIB), ComputeRunningProcesses=[process(4242, 72 * GIB)])
        (one,) = whole(Made(nvml=reading(busy))).findings
        assert one.code == "DR321"
        assert "8.00 GiB of 80.00 GiB are free (0.10); vLLM's default wants 0.92" in one.message
        assert "--gpu-memory-utilization 0.10" in one.remedy

    @pytest.mark.parametrize(("version", "share"), [("0.8.5", None), ("0.9.2", 0.9), ("0.19.1", 0.9), ("0.20.0", 0.92)])
    def test_the_default_is_that_of_the_installed_release(self, version: str, share: float | None) -> None:
        found = whole(Made(installed=software(versions={"vllm": version})))
        assert found.facts["memory"]["vllm_default_share"] == share

    def test_a_card_that_is_not_seen_is_not_held_against_it(self) -> None:
        busy = h100(MemoryInfo=memory(80 * GIB, 72 * GIB, 8 * GIB), ComputeRunningProcesses=[process(4242, 72 * GIB)])
        hidden = msgspec.structs.replace(reading(busy).devices[0], cuda_index=None)
        found = msgspec.structs.replace(reading(busy), devices=(hidden,))
        assert codes(Made(nvml=found)) == {}

    def test_what_the_driver_keeps_has_an_owner(self) -> None:
        nvml = reading(h100(MemoryInfo=memory(80 * GIB, 3 * GIB, 77 * GIB)))
        told = msgspec.structs.replace(nvml.health[0], reserved_bytes=3 * GIB)
        assert codes(Made(nvml=msgspec.structs.replace(nvml, health=(told,)))) == {}

    @pytest.mark.parametrize(
        ("place", "said"), [("container", "outside of it"), ("wsl2", "Windows"), ("machine", "no owner")]
    )
    def test_it_is_said_whose_processes_are_not_listed(self, place: Place, said: str) -> None:
        machine = Made(nvml=reading(h100(MemoryInfo=memory(80 * GIB, 5 * GIB, 75 * GIB))), place=place)
        assert said in codes(machine)["DR322"]

    def test_untold_use_is_not_guessed(self) -> None:
        busy = h100(MemoryInfo=memory(80 * GIB, 5 * GIB, 75 * GIB), ComputeRunningProcesses=[process(4242, None)])
        found = whole(Made(nvml=reading(busy)))
        assert found.findings == ()
        assert any("does not tell it of 1 of 1" in one.reason for one in found.not_checked)


def test_text_says_no_more_than_json() -> None:
    machine = Made(nvml=reading(h100(), h100(1, P2PStatus=5)), environment={"VLLM_LOGGING_LEVEL": "DEBUG"})
    found = whole(machine)
    text, data = doctor_report(found, "text", 10_000), doctor_report(found, "json")
    for one in found.findings:
        assert one.message in text
        assert one.remedy in text
        assert one.code in data
    assert "H100" in text
    assert f"{ARCHITECTURES[0]}" in text
