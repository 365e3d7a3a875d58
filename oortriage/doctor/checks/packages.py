"""Versions of vllm, torch, triton and their kin, and whether each gets what it asks for."""

from __future__ import annotations

from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.interpreter import READ, Installed
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread

NAME = "packages"
TITLE = "versions of the packages, and what they ask of each other"

_METADATA = "Requires-Dist in the installed packages' metadata"
#: Packages whose binary code is built against one another: with another version they crash, or will not load.
_BOUND = frozenset({
    "torch", "torchvision", "torchaudio", "triton", "pytorch-triton", "xformers", "flashinfer-python",
    "flashinfer-cubin", "flashinfer-jit-cache", "sgl-kernel", "sglang-kernel",
})  # fmt: skip
_LISTED = (
    *READ, "transformers", "tokenizers", "numpy", "ray", "nvidia-ml-py", "pynvml", "nvidia-nccl-cu12",
    "nvidia-nccl-cu13", "safetensors", "compressed-tensors",
)  # fmt: skip

BROKEN = Code(
    "DR701",
    "error",
    "a package is beside the wrong version of another",
    "A release of vLLM, torchvision or xformers is built against one torch, and a torch against one Triton; the pin "
    "stands in its metadata. With another version: undefined symbols, `no kernel image`, wrong results.",
    "install the version that is asked for; `pip install vllm==VERSION` in a fresh environment takes it along",
    _METADATA,
)
ABSENT = Code(
    "DR702",
    "error",
    "a package that is asked for is not installed",
    "The metadata of an installed package names another that is not there.",
    "install it, or the asking package anew with its dependencies",
    _METADATA,
)
OTHER = Code(
    "DR703",
    "warning",
    "a requirement is not met",
    "An installed package asks for another version of a package than is there.",
    "install the version that is asked for, or see that the asking package works with this one",
    _METADATA,
)
TWICE = Code(
    "DR704",
    "warning",
    "a package is installed twice",
    "Two versions of its metadata are on the module path; which one runs depends on the order of the folders.",
    "uninstall until none is left, then install once",
    "importlib.metadata of the interpreter",
)
OLD_NVML = Code(
    "DR705",
    "note",
    "the old package pynvml is installed",
    "The module pynvml belongs to the package nvidia-ml-py; the package pynvml is its deprecated copy and may stand in "
    "the way. torch and vLLM warn of it.",
    "`pip uninstall pynvml`, then `pip install --force-reinstall nvidia-ml-py`",
    "https://pypi.org/project/pynvml/",
)
FLASHINFER = Code(
    "DR706",
    "error",
    "FlashInfer's parts are of two releases",
    "flashinfer-cubin and flashinfer-jit-cache hold ready kernels of one release of flashinfer-python, which ends with "
    "`flashinfer-cubin version (...) does not match flashinfer version (...)` when it finds others.",
    "install all three in one release, or uninstall the two with the kernels",
    "flashinfer/jit/env.py (the check, and FLASHINFER_DISABLE_VERSION_CHECK)",
)
CODES = (BROKEN, ABSENT, OTHER, TWICE, OLD_NVML, FLASHINFER)


def check(machine: Machine) -> Checked:
    """Hold each requirement against what is installed."""
    installed = machine.installed
    if isinstance(installed, Unread):
        return Checked(not_checked=((TITLE, installed.reason),))
    listed = {name: installed.versions[name] for name in _LISTED if name in installed.versions}
    facts: dict[str, Any] = {
        "python": installed.python,
        "of_another_interpreter": machine.python is not None,
        "versions": listed,
    }
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    for name, requirements in sorted(installed.requires.items()):
        for text in requirements:
            findings += _judged(name, text, installed, missed)
    findings += [
        TWICE.found(name, f"{name} {first} and {second} are both there") for name, first, second in installed.twice
    ]
    if not machine.environment.get("FLASHINFER_DISABLE_VERSION_CHECK"):
        findings += _flashinfer(installed)
    if installed.version("pynvml") and installed.version("nvidia-ml-py"):
        findings.append(OLD_NVML.found("pynvml", f"pynvml {installed.version('pynvml')} is installed"))
    if not any(name in listed for name in ("torch", "vllm", "triton", "sglang")):
        missed.append((TITLE, "this environment has no torch, triton, vllm or sglang; `--python PATH` names another"))
    return Checked(facts, tuple(findings), tuple(missed))


def _flashinfer(installed: Installed) -> list[Finding]:
    own = installed.version("flashinfer-python")
    findings = []
    for name in ("flashinfer-cubin", "flashinfer-jit-cache"):
        there = installed.version(name)
        if own and there and there.partition("+")[0] != own.partition("+")[0]:
            findings.append(FLASHINFER.found(name, f"{name} is {there}, flashinfer-python is {own}"))
    return findings


def _judged(name: str, text: str, installed: Installed, missed: list[tuple[str, str]]) -> list[Finding]:
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        missed.append((f"a requirement of {name}", f"{text[:80]!r} cannot be read"))
        return []
    other = canonicalize_name(wanted.name)
    try:
        if wanted.marker and not wanted.marker.evaluate({**installed.marker, "extra": ""}):
            return []
        there = installed.version(other)
        owner = f"{name} {installed.version(name)}"
        if not there:
            bound = other in _BOUND or other == "cuda-toolkit" or other.startswith("nvidia-")
            asked = f"{owner} asks for {other}{wanted.specifier}"
            return [
                (ABSENT if bound else OTHER).found(
                    other, f"{asked}; it is not installed", f"`pip install '{other}{wanted.specifier}'`"
                )
            ]
        if wanted.specifier.contains(Version(there), prereleases=True):
            return []
    except (InvalidVersion, ValueError, KeyError) as problem:
        missed.append((f"a requirement of {name}", f"{text[:80]!r}: {problem}"))
        return []
    said = f"{owner} asks for {other}{wanted.specifier}; {there} is installed"
    return [(BROKEN if other in _BOUND else OTHER).found(other, said)]
