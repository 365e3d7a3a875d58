"""Made machines: what a real one would answer, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from oortriage.doctor.examine import examine
from oortriage.doctor.finding import Examination
from oortriage.doctor.interpreter import Installed, TorchBuild
from oortriage.doctor.machine import Entry, KernelLog, LimitName, Machine, Space
from oortriage.doctor.outside import Ran, Unread
from oortriage.doctor.reading import Reading, read
from oortriage.gpu.nvml_trouble import Place
from tests.gpu.fake_nvml import GIB, FakeNvml, NVMLError, card, memory

DEVICE = Entry("device", mine=True, target="")
DENIED = Entry("device", mine=False, target="")
MARKER = {
    "implementation_name": "cpython", "implementation_version": "3.12.3", "os_name": "posix",
    "platform_machine": "x86_64", "platform_release": "", "platform_system": "Linux", "platform_version": "",
    "python_full_version": "3.12.3", "platform_python_implementation": "CPython", "python_version": "3.12",
    "sys_platform": "linux",
}  # fmt: skip
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
NODES = {f"/dev/{name}": DEVICE for name in ("nvidiactl", "nvidia0", "nvidia-uvm")}
LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so"
#: What was installed where vLLM 0.22.1 runs.
VERSIONS = {"vllm": "0.22.1", "torch": "2.11.0", "triton": "3.6.0", "numpy": "2.2.6", "nvidia-ml-py": "13.580.82"}
REQUIRES = {
    "vllm": ("torch==2.11.0", 'numpy; extra == "x"', "nvidia-ml-py>=12"),
    "torch": ('triton==3.6.0; platform_system == "Linux"',),
}


class Made(Machine):
    """A machine of tables; what is in none of them is not there."""

    def __init__(
        self,
        *,
        nvml: Reading | None = None,
        files: Mapping[str, str] | None = None,
        entries: Mapping[str, Entry] | None = None,
        environment: Mapping[str, str] | None = None,
        place: Place = "machine",
        installed: Installed | Unread | None = None,
        spaces: Mapping[str, Space] | None = None,
        limits: Mapping[str, tuple[int | None, int | None]] | None = None,
        commands: Mapping[str, Ran] | None = None,
        log: str | None = "",
        system: str = "linux",
        topo: str | None = None,
        asked: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(topo=Path("/topo.txt") if topo is not None else None)
        self.nvml = nvml or reading()
        self.environment = dict(environment or {})
        self.place = place
        self.system = system
        self.asked_architectures = asked or Unread("torch: not asked")
        self.installed = installed if installed is not None else software()
        self.files = {**(files or {}), **({"/topo.txt": topo} if topo is not None else {})}
        self.entries = dict(NODES if entries is None else entries)
        self.spaces = {"/dev/shm": Space(16 * GIB, 16 * GIB)} if spaces is None else dict(spaces)
        self.limits = {"memlock": (None, None), "nofile": (1 << 20, 1 << 20), **(limits or {})}
        self.commands = dict(commands or {})
        self.log = log

    def text(self, path: str) -> str | Unread:
        return self.files.get(path) or Unread(f"{path} is not there", "missing")

    def names(self, path: str) -> list[str] | Unread:
        inner = {
            one[len(path) + 1 :].split("/")[0] for one in (*self.files, *self.entries) if one.startswith(f"{path}/")
        }
        return sorted(inner) if inner or path == "/proc" else Unread(f"{path} is not there", "missing")

    def entry(self, path: str) -> Entry | Unread:
        if path in self.files:
            return Entry("file", mine=True, target=path)
        return self.entries.get(path) or Unread(f"{path} is not there", "missing")

    def space(self, path: str) -> Space | Unread:
        return self.spaces.get(path) or Unread(f"{path} is not there", "missing")

    def limit(self, name: LimitName) -> tuple[int | None, int | None] | Unread:
        return self.limits.get(name) or Unread("not told")

    def run(self, command: Sequence[str], seconds: float = 1) -> Ran | Unread:  # noqa: ARG002
        return self.commands.get(command[0]) or Unread(f"{command[0]} is not there", "missing")

    def kernel_log(self) -> KernelLog | Unread:
        return Unread("dmesg: Operation not permitted", "denied") if self.log is None else KernelLog(self.log, "dmesg")


def h100(number: int = 0, **other: Any) -> dict[str, Any]:
    """A healthy card, as the library answers; 80 GiB, all but one free."""
    answers = {
        "Name": "NVIDIA H100 80GB HBM3",
        "CudaComputeCapability": (9, 0),
        "MemoryInfo": memory(80 * GIB, GIB // 2, 80 * GIB - GIB // 2),
        "MigMode": [0, 0],
        "PersistenceMode": 1,
        "ComputeMode": 0,
        "EccMode": [1, 1],
        "TotalEccErrors": 0,
        "RemappedRows": (0, 0, 0, 0),
        "RetiredPages": NVMLError(3),
        "RetiredPagesPendingStatus": NVMLError(3),
        "P2PStatus": 0,
        "PciInfo": SimpleNamespace(busId=f"00000000:{number + 11:02X}:00.0"),
        "MPSComputeRunningProcesses": [],
    }
    return card(number, **{**answers, **other})


def reading(*cards: Any, driver: str = "580.95.05", cuda: int = 13000, **answers: Any) -> Reading:
    """Read cards through the stand-in for the library; one healthy card when none is given."""
    nvml = FakeNvml(
        *(cards or (h100(),)),
        nvmlSystemGetDriverVersion=driver,
        nvmlSystemGetCudaDriverVersion_v2=cuda,
        **answers,
    )
    return read(nvml, environment=answers.pop("environment", {}), place="machine")


def refused(code: int, text: str = "said by NVML", place: Place = "machine") -> Reading:
    """A library that answers with an error at once."""
    return read(FakeNvml(card(), nvmlInit=NVMLError(code, text)), environment={}, place=place)


def software(
    torch: str = "2.11.0+cu130",
    cuda: str = "13.0",
    *,
    architectures: tuple[str, ...] = ARCHITECTURES,
    versions: Mapping[str, str] | None = None,
    requires: Mapping[str, tuple[str, ...]] | None = None,
    **other: Any,
) -> Installed:
    """An environment; no torch where ``torch`` is empty."""
    return Installed(
        python="3.12.3",
        marker=MARKER,
        versions={**VERSIONS, "torch": torch.partition("+")[0], **(versions or {})},
        requires=dict(REQUIRES if requires is None else requires),
        torch=TorchBuild(torch, cuda, other.pop("hip", ""), "", architectures) if torch else None,
        vllm_variables=frozenset({"VLLM_LOGGING_LEVEL", "VLLM_CACHE_ROOT"}),
        **other,
    )


def codes(machine: Machine) -> dict[str, str]:
    """Examine, and return the messages by code."""
    return {one.code: one.message for one in whole(machine).findings}


def whole(machine: Machine) -> Examination:
    """Examine; no check may have failed."""
    found = examine(machine)
    failed = [one for one in found.not_checked if "this check failed" in one.reason or "did not end" in one.reason]
    assert not failed, failed
    return found


def kernel(version: str) -> dict[str, str]:
    """The file in which the kernel's module names itself."""
    return {
        "/proc/driver/nvidia/version": f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release"
    }
