"""What torch was built for, against what the driver runs and what the card is."""

from __future__ import annotations

from typing import Any

from oortriage.doctor.checks.driver import compat_packages, signs_of_a_gpu
from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.interpreter import Installed, TorchBuild
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.versions import COMPATIBILITY, covers, is_data_center, lowest_driver, release

NAME = "runtime"
TITLE = "torch's CUDA against the driver and the card"

_BINARY = "CUDA C++ Programming Guide, application compatibility"

TOO_NEW = Code(
    "DR201",
    "error",
    "torch's CUDA is too new for the driver",
    "A driver runs every CUDA release up to its own, and within one major release also newer minor ones. torch carries "
    "its own CUDA runtime, so an installed toolkit changes nothing; and the `CUDA Version` that nvidia-smi prints is "
    "the highest the driver runs, not what is in use. CUDA error 35, `The NVIDIA driver on your system is too old`.",
    "update the driver, or install a torch built for an older CUDA (`--index-url https://download.pytorch.org/whl/...`)",
    COMPATIBILITY,
)
MINOR = Code(
    "DR202",
    "note",
    "torch runs by minor-version compatibility",
    "torch was built with a newer minor release of CUDA than the driver's own. That runs, without features that the "
    "driver lacks; PTX of the newer release cannot be compiled by this driver (CUDA error 222).",
    "nothing to do unless something fails with error 222; then update the driver",
    COMPATIBILITY,
)
NO_CUDA = Code(
    "DR203",
    "error",
    "torch has no CUDA",
    "There is a GPU of NVIDIA, and the installed torch was built without CUDA: `torch.cuda.is_available()` is False.",
    "install a CUDA build: `pip install torch --index-url https://download.pytorch.org/whl/cu130` (choose what the "
    "driver runs)",
    "torch/version.py of the installed package",
)
OTHER_VENDOR = Code(
    "DR204",
    "error",
    "torch was built for another vendor's GPU",
    "There is a GPU of NVIDIA, and the installed torch was built for ROCm or XPU.",
    "install a CUDA build of torch",
    "torch/version.py of the installed package",
)
NO_CODE = Code(
    "DR205",
    "error",
    "torch holds no code for this card",
    "torch's libraries hold machine code for the listed architectures only. Machine code runs on later cards of the "
    "same major capability; PTX on any later card. Neither is there for this one: `no kernel image is available for "
    "execution on the device`.",
    "install a torch built for this card (older cards: an older torch; newer ones: a newer CUDA build)",
    _BINARY,
)
BY_JIT = Code(
    "DR206",
    "note",
    "torch's code is compiled for this card at first use",
    "torch holds only PTX that fits this card; the driver compiles it at the first start, which can take minutes.",
    "nothing to do; keep ~/.nv/ComputeCache between starts",
    _BINARY,
)
OTHER_RUNTIME = Code(
    "DR207",
    "error",
    "a package's kernels are linked to another CUDA than torch's",
    "The kernels in a package's own library need one major release of the CUDA runtime, and the torch beside them "
    "brings another: `ImportError: libcudart.so.13: cannot open shared object file`, or two runtimes in one process.",
    "install the build of that package which fits torch (vLLM names it vllm==VERSION+cu129 and the like), or torch for "
    "the package's CUDA",
    "libcudart.so.N, as named in the package's library files",
)
CODES = (TOO_NEW, MINOR, NO_CUDA, OTHER_VENDOR, NO_CODE, BY_JIT, OTHER_RUNTIME)


def check(machine: Machine) -> Checked:
    """Hold torch's build against driver and cards."""
    installed = machine.installed
    if isinstance(installed, Unread):
        return Checked(not_checked=(("torch's build", installed.reason),))
    build = installed.torch
    if build is None:
        return Checked({"torch": ""}, not_checked=(("torch's build", "torch is not installed in this environment"),))
    facts: dict[str, Any] = {
        "torch": build.version,
        "built_for_cuda": build.cuda,
        "built_for_hip": build.hip,
        "architectures": list(build.architectures),
        "runtime_package": _runtime_package(installed),
        "linked_to_cudart": installed.cudart,
        "driver_ceiling": machine.nvml.ceiling,
        "lowest_driver": lowest_driver(build.cuda),
    }
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    gpu = bool(machine.nvml.devices or signs_of_a_gpu(machine))
    if not build.cuda:
        if gpu and (build.hip or build.xpu):
            findings.append(OTHER_VENDOR.found("torch", f"torch {build.version} was built for {_vendor(build)}"))
        elif gpu:
            findings.append(NO_CUDA.found("torch", f"torch {build.version} was built without CUDA"))
        return Checked(facts, tuple(findings))
    major = build.cuda.partition(".")[0]
    findings += [
        OTHER_RUNTIME.found(
            name, f"{name} is linked to libcudart.so.{number}, torch {build.version} brings CUDA {build.cuda}"
        )
        for name, number in sorted(installed.cudart.items())
        if number != major
    ]
    if machine.nvml.ceiling:
        findings += _against_driver(build, machine)
    else:
        missed.append(("torch's CUDA against the driver", _why_no_driver(machine)))
    if not machine.nvml.devices:
        missed.append(("torch's architectures against the cards", _why_no_driver(machine)))
        return Checked(facts, tuple(findings), tuple(missed))
    held = build.architectures or machine.asked_architectures
    if isinstance(held, Unread):
        said = f"the list is not in lib/libtorch_python.so, and torch does not tell it: {held.reason}"
        missed.append(("torch's architectures against the cards", said))
    else:
        facts["architectures"] = list(held)
        findings += _against_cards(build.version, held, machine)
    return Checked(facts, tuple(findings), tuple(missed))


def _why_no_driver(machine: Machine) -> str:
    problem = machine.nvml.unavailable
    return problem.reason if problem else "the driver does not tell"


def _vendor(build: TorchBuild) -> str:
    return f"ROCm (HIP {build.hip})" if build.hip else f"XPU ({build.xpu})"


def _runtime_package(installed: Installed) -> str:
    """Name the package that carries the CUDA runtime, with its version."""
    for name in (
        "nvidia-cuda-runtime",
        "nvidia-cuda-runtime-cu13",
        "nvidia-cuda-runtime-cu12",
        "nvidia-cuda-runtime-cu11",
    ):
        if version := installed.version(name):
            return f"{name} {version}"
    return ""


def _against_driver(build: TorchBuild, machine: Machine) -> list[Finding]:
    driver, ceiling = machine.nvml.driver, machine.nvml.ceiling
    wanted, highest = release(build.cuda), release(ceiling)
    if not wanted or not highest or wanted <= highest:
        return []
    said = f"torch {build.version} was built with CUDA {build.cuda}; driver {driver} runs CUDA up to {ceiling}"
    if wanted[0] == highest[0] and wanted[0] >= 11:
        return [MINOR.found("torch", said)]
    lowest = lowest_driver(build.cuda)
    need = f"update the driver to {lowest} or later" if lowest else "update the driver"
    compat = f"cuda-compat-{build.cuda.replace('.', '-')}"
    there = [folder for folder, found in compat_packages(machine).items() if release(found) > release(driver)]
    way = f"LD_LIBRARY_PATH={there[0]} (a {compat} that is installed)" if there else f"the package {compat}"
    if not all(is_data_center(one.name) for one in machine.nvml.devices):
        way = ""
    return [
        TOO_NEW.found(
            "torch",
            f"{said}; CUDA {wanted[0]}.x needs driver {lowest} or later" if lowest else said,
            f"{need}, or install a torch built for CUDA {highest[0]}.x"
            + (f"; on these cards also {way}" if way else ""),
        )
    ]


def _against_cards(version: str, architectures: tuple[str, ...], machine: Machine) -> list[Finding]:
    findings = []
    listed = " ".join(architectures)
    for one in machine.nvml.devices:
        if one.capability is None:
            continue
        reach = covers(architectures, one.capability)
        capability = f"{one.capability[0]}.{one.capability[1]}"
        said = f"{one.name} has capability {capability}; torch {version} holds {listed}"
        if reach == "no":
            findings.append(NO_CODE.found(f"GPU {one.index}", said))
        elif reach == "jit":
            findings.append(BY_JIT.found(f"GPU {one.index}", said))
    return findings
