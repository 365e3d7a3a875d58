"""Every code is made by a machine that has just that wrong, and by no healthy one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from oortriage.doctor.checks import ALL, every_code
from oortriage.doctor.machine import Entry, Space
from oortriage.doctor.reference import reference
from tests.conftest import ROOT
from tests.doctor.made import (
    DENIED,
    DEVICE,
    LIBCUDA,
    NODES,
    REQUIRES,
    Made,
    h100,
    kernel,
    reading,
    refused,
    software,
    whole,
)
from tests.gpu.fake_nvml import GIB, NVMLError, cut, memory, process

V2 = {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.current": str(10 * GIB)}
GROUP = {**V2, "/sys/fs/cgroup/memory.max": str(200 * GIB)}


def library(path: str, name: str = "libcuda.so.1") -> dict[str, Entry]:
    """A folder of libraries that goes first, with a libcuda that a link leads to."""
    return {**NODES, f"/first/{name}": Entry("file", mine=True, target=path)}


FIRST = {"LD_LIBRARY_PATH": "/first"}
DAEMON = {"/tmp/nvidia-mps/control": "x", "/proc/77/comm": "nvidia-cuda-mps-control\n"}
TURING = h100(Name="Tesla T4", CudaComputeCapability=(7, 5))
VOLTA = software(architectures=("sm_70",))
XID = "[ 12.3] NVRM: Xid (PCI:0000:0b:00): {}, pid=77, name=python, {}\n"

WRONG: dict[str, Callable[[], Made]] = {
    "DR100": lambda: Made(nvml=refused(12), entries={}, installed=software("2.11.0+cpu", "")),
    "DR101": lambda: Made(nvml=refused(12)),
    "DR102": lambda: Made(nvml=refused(18, "Driver/library version mismatch"), files=kernel("580.95.05")),
    "DR103": lambda: Made(entries={**NODES, "/dev/nvidia0": DENIED}),
    "DR104": lambda: Made(entries={"/dev/nvidiactl": DEVICE, "/dev/nvidia0": DEVICE}),
    "DR105": lambda: Made(
        entries={
            **NODES,
            "/cuda/lib64/stubs/libcuda.so.1": Entry("file", mine=True, target="/cuda/lib64/stubs/libcuda.so"),
        },
        environment={"LD_LIBRARY_PATH": "/cuda/lib64/stubs"},
    ),
    "DR106": lambda: Made(
        entries={**NODES, "/cuda/stubs/libcuda.so": Entry("file", mine=True, target="/cuda/stubs/libcuda.so")},
        environment={"LD_LIBRARY_PATH": ":/cuda/stubs/"},
    ),
    "DR107": lambda: Made(
        entries=library("/cuda/compat/libcuda.so.550.54.15"), environment=FIRST, files=kernel("580.95.05")
    ),
    "DR108": lambda: Made(
        entries=library("/cuda/compat/libcuda.so.590.10"), environment=FIRST, files=kernel("580.95.05")
    ),
    "DR109": lambda: Made(
        nvml=reading(h100(Name="NVIDIA GeForce RTX 4090", CudaComputeCapability=(8, 9))),
        entries=library("/cuda/compat/libcuda.so.590.10"),
        environment=FIRST,
        files=kernel("580.95.05"),
    ),
    "DR110": lambda: Made(place="wsl2", entries=library(f"{LIBCUDA}.580.95.05"), environment=FIRST),
    "DR111": lambda: Made(nvml=refused(15, "GPU is lost")),
    "DR112": lambda: Made(nvml=msgspec.structs.replace(reading(), broken="the process ended with signal 11")),
    "DR201": lambda: Made(nvml=reading(driver="535.183.01", cuda=12020)),
    "DR202": lambda: Made(installed=software("2.13.0+cu131", "13.1", versions={"vllm": "0.33.0"}, requires={})),
    "DR203": lambda: Made(installed=software("2.11.0+cpu", "")),
    "DR204": lambda: Made(installed=software("2.11.0+rocm7", "", hip="7.0.51831")),
    "DR205": lambda: Made(installed=software(architectures=("sm_100", "compute_120"))),
    "DR206": lambda: Made(installed=software(architectures=("sm_80", "compute_80"))),
    "DR207": lambda: Made(installed=software(cudart={"vllm": "12", "torchvision": "13"})),
    "DR221": lambda: Made(
        nvml=reading(h100(Name="Tesla V100-SXM2-32GB", CudaComputeCapability=(7, 0))), installed=VOLTA
    ),
    "DR222": lambda: Made(nvml=reading(TURING), installed=software(versions={"vllm": "0.10.2"}, requires={})),
    "DR223": lambda: Made(nvml=reading(TURING)),
    "DR301": lambda: Made(nvml=reading(h100(ComputeMode=2))),
    "DR302": lambda: Made(nvml=reading(h100(ComputeMode=3))),
    "DR303": lambda: Made(nvml=reading(h100(PersistenceMode=0))),
    "DR304": lambda: Made(nvml=_with_health(fabric="in_progress")),
    "DR305": lambda: Made(nvml=reading(h100(ComputeRunningProcesses=NVMLError(4, "Insufficient Permissions")))),
    "DR306": lambda: Made(nvml=reading(h100(), h100(1, Name="NVIDIA A100-SXM4-80GB", CudaComputeCapability=(8, 0)))),
    "DR321": lambda: Made(
        nvml=reading(
            h100(MemoryInfo=memory(80 * GIB, 40 * GIB, 40 * GIB), ComputeRunningProcesses=[process(4242, 40 * GIB)])
        )
    ),
    "DR322": lambda: Made(nvml=reading(h100(MemoryInfo=memory(80 * GIB, 5 * GIB, 75 * GIB)))),
    "DR341": lambda: Made(nvml=reading({**cut(parts=0), "MemoryInfo": memory(40 * GIB, 0, 40 * GIB)})),
    "DR342": lambda: Made(nvml=reading({**cut(parts=3), "MemoryInfo": memory(40 * GIB, 0, 40 * GIB)})),
    "DR343": lambda: Made(nvml=reading(h100(MigMode=[0, 1]))),
    "DR351": lambda: Made(environment={"CUDA_MPS_PIPE_DIRECTORY": "/tmp/elsewhere"}),
    "DR352": lambda: Made(files={"/tmp/nvidia-mps/control": "x", "/proc/1/comm": "systemd\n"}),
    "DR353": lambda: Made(files=DAEMON),
    "DR354": lambda: Made(files=DAEMON, environment={"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "10G"}),
    "DR355": lambda: Made(environment={"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "150%"}),
    "DR361": lambda: Made(nvml=reading(h100(TotalEccErrors=2))),
    "DR362": lambda: Made(nvml=_with_health(uncorrected_volatile=0, uncorrected_aggregate=3)),
    "DR363": lambda: Made(nvml=reading(h100(RemappedRows=(0, 9, 0, 1)))),
    "DR364": lambda: Made(nvml=reading(h100(RemappedRows=(0, 1, 1, 0)))),
    "DR365": lambda: Made(nvml=reading(h100(RetiredPages=[1, 2], RetiredPagesPendingStatus=1))),
    "DR366": lambda: Made(nvml=reading(h100(EccMode=[0, 0]))),
    "DR367": lambda: Made(nvml=reading(h100(EccMode=[1, 0]))),
    "DR371": lambda: Made(log=XID.format(79, "GPU has fallen off the bus.")),
    "DR372": lambda: Made(log=XID.format(31, "Ch 00000008, intr 10000000. MMU Fault: ENGINE GRAPHICS")),
    "DR373": lambda: Made(log=XID.format(45, "Ch 00000008")),
    "DR374": lambda: Made(log=XID.format(999, "something new")),
    "DR375": lambda: Made(log="nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"),
    "DR381": lambda: Made(nvml=reading(h100(P2PStatus=5), h100(1, P2PStatus=5))),
    "DR382": lambda: Made(nvml=reading(h100(P2PStatus=6), h100(1, P2PStatus=6))),
    "DR401": lambda: Made(spaces={"/dev/shm": Space(64 << 20, 64 << 20)}),
    "DR402": lambda: Made(spaces={"/dev/shm": Space(16 * GIB, GIB)}),
    "DR403": lambda: Made(spaces={}),
    "DR411": lambda: Made(
        files={**GROUP, "/sys/fs/cgroup/memory.events": "low 0\noom 4\noom_kill 3\noom_group_kill 0\n"}
    ),
    "DR412": lambda: Made(files={**GROUP, "/sys/fs/cgroup/memory.current": str(195 * GIB)}),
    "DR413": lambda: Made(files={**GROUP, "/sys/fs/cgroup/memory.max": str(64 * GIB)}),
    "DR421": lambda: Made(limits={"memlock": (65536, 65536)}, files={"/sys/class/infiniband/mlx5_0": "x"}),
    "DR422": lambda: Made(limits={"nofile": (1024, 1024)}),
    "DR501": lambda: Made(environment={"CUDA_VISIBLE_DEVICES": ""}),
    "DR502": lambda: Made(environment={"CUDA_VISIBLE_DEVICES": "0,3"}),
    "DR503": lambda: Made(environment={"CUDA_VISIBLE_DEVICES": "0,0"}),
    "DR504": lambda: Made(place="container", environment={"NVIDIA_VISIBLE_DEVICES": "void"}),
    "DR505": lambda: Made(environment={"CUDA_DEVICE_ORDER": "PCI"}),
    "DR506": lambda: Made(
        nvml=refused(12), entries={}, environment={"CUDA_VISIBLE_DEVICES": "cuda:0"}, installed=software(requires={})
    ),
    "DR511": lambda: Made(
        environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
        installed=software("2.8.0+cu128", "12.8", versions={"vllm": "0.11.0", "triton": "3.4.0"}, requires={}),
    ),
    "DR512": lambda: Made(
        environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "backend:native"}
    ),
    "DR513": lambda: Made(environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segment:True"}),
    "DR514": lambda: Made(environment={"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:20"}),
    "DR515": lambda: Made(environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
    "DR521": lambda: Made(environment={"VLLM_PROFILE_MEMORY": "1"}),
    "DR522": lambda: Made(environment={"CUDA_LAUNCH_BLOCKING": "1"}),
    "DR523": lambda: Made(environment={"VLLM_USE_V1": "0"}),
    "DR524": lambda: Made(environment={"NCCL_P2P_DISABLE": "1"}),
    "DR525": lambda: Made(environment={"LD_PRELOAD": "/usr/local/vgpu/libvgpu.so"}),
    "DR526": lambda: Made(environment={"CUDA_FORCE_PTX_JIT": "1"}),
    "DR701": lambda: Made(installed=software(versions={"triton": "3.5.1"})),
    "DR702": lambda: Made(installed=software(requires={"torch": ("nvidia-cudnn-cu13==9.15.1.9",)})),
    "DR703": lambda: Made(installed=software(requires={**REQUIRES, "vllm": ("numpy<2",)})),
    "DR704": lambda: Made(installed=software(twice=(("torch", "2.11.0", "2.10.0"),))),
    "DR706": lambda: Made(
        installed=software(versions={"flashinfer-python": "0.6.4", "flashinfer-jit-cache": "0.6.3+cu130"})
    ),
    "DR705": lambda: Made(installed=software(versions={"pynvml": "11.5.3"})),
}

#: Where one thing wrong cannot be without another: the form of a list is judged only where there is no driver.
ALSO = {"DR506": {"DR100"}, "DR222": {"DR221"}, "DR223": {"DR221", "DR222"}}


def _with_health(**other: object):
    found = reading()
    return msgspec.structs.replace(found, health=(msgspec.structs.replace(found.health[0], **other),))


def test_a_healthy_machine_has_nothing_wrong() -> None:
    found = whole(Made(files=GROUP))
    assert found.findings == ()
    assert found.exit_code == 0
    assert {one.check for one in found.not_checked} == {"peer", "limits"}


def test_every_code_has_a_machine() -> None:
    assert sorted(WRONG) == [code.code for code in every_code()]


@pytest.mark.parametrize("code", sorted(WRONG))
def test_the_machine_with_just_that_wrong(code: str) -> None:
    found = whole(WRONG[code]())
    assert {one.code for one in found.findings} - {code} == ALSO.get(code, set())
    (one,) = (one for one in found.findings if one.code == code)
    assert one.subject
    assert one.message
    assert one.remedy
    assert one.source
    if code not in ALSO:
        assert found.exit_code == (0 if one.severity == "note" else 1)


def test_codes_and_names_stand_for_one_thing() -> None:
    every = [code.code for code in every_code()]
    assert len(set(every)) == len(every)
    assert len({one.NAME for one in ALL}) == len(ALL)


def test_the_page_is_current() -> None:
    """``python -m oortriage.doctor.reference > docs/doctor.md`` writes it anew."""
    assert (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8") == reference()
