"""Settings of PyTorch's memory allocator: names and values that the installed torch knows."""

from __future__ import annotations

import difflib
from typing import Any

from oortriage.doctor.allocator_options import CUDA, GENERAL, GENERAL_NAME_SINCE, OPTIONS, SOURCE, parts_of
from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.versions import release

NAME = "allocator"
TITLE = "settings of PyTorch's allocator"

#: The first release whose libraries were read.
_OLDEST_READ = (2, 4)
_NEWEST_READ = (2, 13)

NOT_READ = Code(
    "DR511",
    "warning",
    "PYTORCH_ALLOC_CONF is not read by this torch",
    "The allocator for CUDA reads PYTORCH_ALLOC_CONF from torch 2.10 on; older ones read PYTORCH_CUDA_ALLOC_CONF "
    "alone, which newer ones still read too.",
    "set PYTORCH_CUDA_ALLOC_CONF",
    SOURCE,
)
BOTH = Code(
    "DR512",
    "warning",
    "two names of the allocator's settings, two values",
    "From torch 2.10 on PYTORCH_ALLOC_CONF is read first, and PYTORCH_CUDA_ALLOC_CONF only where it is not set.",
    "set one of the two",
    SOURCE,
)
UNKNOWN = Code(
    "DR513",
    "error",
    "an option that the allocator does not know",
    "PyTorch ends with `Unrecognized CachingAllocator option` (up to 2.9) or `Unrecognized key` (from 2.10). The form "
    "is name:value, options parted by commas.",
    "correct the name, or leave the option out",
    SOURCE,
)
ILLEGAL = Code(
    "DR514",
    "error",
    "a value that the allocator refuses",
    "PyTorch checks the values when CUDA starts, and ends on one that is out of range.",
    "correct the value",
    SOURCE,
)
NO_CACHE = Code(
    "DR515",
    "warning",
    "PyTorch's cache of memory is switched off",
    "PYTORCH_NO_CUDA_MEMORY_CACHING makes every allocation a cudaMalloc: slow, and meant for finding errors. CUDA "
    "graphs cannot be captured with it.",
    "unset PYTORCH_NO_CUDA_MEMORY_CACHING",
    "docs.pytorch.org/docs/stable/cuda_environment_variables.html",
)
CODES = (NOT_READ, BOTH, UNKNOWN, ILLEGAL, NO_CACHE)


def check(machine: Machine) -> Checked:
    """Read the settings as the installed torch would."""
    environment = machine.environment
    general, cuda = environment.get(GENERAL), environment.get(CUDA)
    facts: dict[str, Any] = {GENERAL: general, CUDA: cuda}
    installed = machine.installed
    build = None if isinstance(installed, Unread) else installed.torch
    version = release(build.version) if build else ()
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    if environment.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
        findings.append(NO_CACHE.found("PYTORCH_NO_CUDA_MEMORY_CACHING", "it is set"))
    if not general and not cuda:
        return Checked(facts, tuple(findings))
    if not version:
        missed.append(("which names this torch reads", "torch is not installed in this environment"))
    named = f"torch {build.version}" if build else "torch"
    if general and version and version < GENERAL_NAME_SINCE:
        findings.append(NOT_READ.found(GENERAL, f"{named} does not read it"))
    if general and cuda and general.strip() != cuda.strip() and not (version and version < GENERAL_NAME_SINCE):
        findings.append(BOTH.found(GENERAL, f"{GENERAL} is {general[:80]!r}, {CUDA} is {cuda[:80]!r}"))
    for name, text in ((GENERAL, general), (CUDA, cuda)):
        if text:
            findings += _options(name, text, version[:2], missed)
    return Checked(facts, tuple(findings), tuple(missed))


def _options(name: str, text: str, version: tuple[int, ...], missed: list[tuple[str, str]]) -> list[Finding]:
    findings = []
    for option, value in parts_of(text):
        known = OPTIONS.get(option)
        if known is None:
            if version > _NEWEST_READ:
                missed.append(
                    (f"{name}: {option[:40]}", "this torch is newer than the releases whose options were read")
                )
                continue
            findings.append(UNKNOWN.found(name, f"{option[:60]!r} is no option", _nearest(option)))
        elif version and max(version, _OLDEST_READ) < known.since:
            since = ".".join(map(str, known.since))
            findings.append(
                UNKNOWN.found(name, f"{option} was found from torch {since} on, here is {_dotted(version)}")
            )
        elif not known.legal(value):
            findings.append(ILLEGAL.found(name, f"{option} is {value[:40]!r}; it wants {known.wants}"))
    return findings


def _nearest(option: str) -> str:
    if "=" in option:
        return "write name:value with a colon, not an equals sign"
    near = difflib.get_close_matches(option, OPTIONS, 1)
    return f"did you mean {near[0]}?" if near else ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
