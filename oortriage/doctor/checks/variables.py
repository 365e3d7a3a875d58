"""Other variables that change how CUDA, NCCL, Triton and vLLM behave: listed, secrets never shown."""

from __future__ import annotations

import re
from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.interpreter import Installed
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread

NAME = "variables"
TITLE = "variables that matter"

_PREFIXES = (
    "VLLM_", "NCCL_", "TRITON_", "CUDA_", "NVIDIA_", "PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "FLASHINFER_", "SGLANG_",
    "SGL_", "XFORMERS_",
)  # fmt: skip
_NAMES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "OMP_NUM_THREADS", "MAX_JOBS", "HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM")
#: A name with one of these words holds a secret, whatever its value looks like.
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CRED|COOKIE|PRIVATE|SIGNATURE|BEARER|DSN|WEBHOOK|CERT", re.IGNORECASE)
#: Names with such a word that hold none.
_NO_SECRET = frozenset({"TOKENIZERS_PARALLELISM"})
#: Conditions under which an image may start: long, and settled by the time that anybody reads them.
_NOISE = "NVIDIA_REQUIRE_"
_LONGEST = 200
#: A run of so many letters and digits, with some of each, may be a key.
_KEY_LENGTH = 24

INVENTED = Code(
    "DR521",
    "warning",
    "a variable that no program reads",
    "It is passed on in guides, and neither NVIDIA's nor vLLM's sources have it: it changes nothing.",
    "unset it",
    "NVIDIA's list of CUDA's variables (CUDA Programming Guide); vllm/envs.py of 30 releases from 0.5.4 to 0.33.0",
)
BLOCKING = Code(
    "DR522",
    "warning",
    "CUDA_LAUNCH_BLOCKING is on",
    "Every kernel launch waits for its end: right for finding the line of an error, slow for all else. It frees no "
    "memory.",
    "unset it outside of debugging",
    "CUDA C++ Programming Guide, environment variables",
)
NOT_VLLM = Code(
    "DR523",
    "warning",
    "a VLLM_ variable that the installed vLLM does not read",
    "Its table of variables (vllm/envs.py) has no such name. vLLM 0.17.1 and later warn of it at start; older ones "
    "ignore it in silence.",
    "see `oortriage lint` for what took its place",
    "vllm/envs.py of the installed package",
)
NCCL_OFF = Code(
    "DR524",
    "note",
    "a variable switches a way of NCCL off",
    "NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_IB_DISABLE take transports away: right against faulty hardware, slow "
    "otherwise.",
    "unset it where the hardware works",
    "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
)
PRELOAD = Code(
    "DR525",
    "note",
    "LD_PRELOAD is set",
    "A library stands before all others. Sharing layers for GPUs (HAMi, cGPU) do so, and then the memory that programs "
    "see is not the card's.",
    "know what it is; leave it out to see whether a fault goes away",
    "man 8 ld.so",
)
FORCE_JIT = Code(
    "DR526",
    "warning",
    "CUDA is told how to compile",
    "CUDA_FORCE_PTX_JIT throws away all ready machine code and compiles PTX anew, and programs without PTX fail; "
    "CUDA_DISABLE_PTX_JIT forbids compiling PTX.",
    "unset it outside of testing",
    "CUDA C++ Programming Guide, environment variables",
)
CODES = (INVENTED, BLOCKING, NOT_VLLM, NCCL_OFF, PRELOAD, FORCE_JIT)

_INVENTED = (
    "CUDA_DISABLE_DEPRECATED_PTX", "VLLM_PROFILE_MEMORY", "NV_GPU_NVLINK_ENABLE", "VLLM_DEBUG_MEMORY",
    "VLLM_STANDBY_MEM", "VLLM_METRICS_LEVEL", "VLLM_LOG_LEVEL",
)  # fmt: skip
_WAYS = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")


def check(machine: Machine) -> Checked:
    """List the variables, and judge those that are known to do harm or nothing."""
    environment = machine.environment
    findings: list[Finding] = []
    missed: list[tuple[str, str]] = []
    on = {name for name, value in environment.items() if value not in ("", "0")}
    findings += [INVENTED.found(name, "it is set, and nothing reads it") for name in _INVENTED if name in environment]
    for code, names in (
        (BLOCKING, ("CUDA_LAUNCH_BLOCKING",)),
        (FORCE_JIT, ("CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT")),
        (NCCL_OFF, _WAYS),
    ):
        findings += [code.found(name, "it is set") for name in names if name in on]
    if environment.get("LD_PRELOAD"):
        findings.append(PRELOAD.found("LD_PRELOAD", "a library is loaded before all others"))
    findings += _of_vllm(environment.keys(), machine.installed, missed)
    return Checked({"set": shown(dict(environment))}, tuple(findings), tuple(missed))


def shown(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables that matter; what is or may be a secret without its value."""
    found: dict[str, str] = {}
    for name, value in sorted(environment.items()):
        if name.startswith(_NOISE):
            continue
        if name.startswith(_PREFIXES) or name in _NAMES or name in _INVENTED:
            found[name] = "(set, not shown)" if is_secret(name, value) else value[:_LONGEST]
    return found


def is_secret(name: str, value: str) -> bool:
    """Say whether a variable may hold a secret: by its name, or by a value with a login or letters as in keys."""
    if _SECRET.search(name) and name not in _NO_SECRET:
        return True
    if re.search(r"://[^/\s]*@", value):
        return True
    return any(
        len(word) >= _KEY_LENGTH and re.search(r"\d", word) and re.search(r"[A-Za-z]", word)
        for word in re.split(r"[^A-Za-z0-9_]+", value)
    )


def _of_vllm(names: Any, installed: Installed | Unread, missed: list[tuple[str, str]]) -> list[Finding]:
    own = sorted(one for one in names if one.startswith("VLLM_") and one not in _INVENTED)
    if not own:
        return []
    if isinstance(installed, Unread) or installed.vllm_variables is None:
        why = installed.reason if isinstance(installed, Unread) else "no vLLM is installed in this environment"
        missed.append((f"whether vLLM reads {', '.join(own[:6])}", why))
        return []
    version = installed.version("vllm")
    return [
        NOT_VLLM.found(name, f"vLLM {version} does not read it") for name in own if name not in installed.vllm_variables
    ]
