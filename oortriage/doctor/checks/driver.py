"""NVIDIA's driver: is it there, does it answer, do its parts fit together, may this user open it."""

from __future__ import annotations

import re
from typing import Any

from oortriage.doctor.finding import Checked, Code, Finding
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Ran, Unread
from oortriage.doctor.versions import FORWARD, is_consumer, is_data_center, release

NAME = "driver"
TITLE = "NVIDIA's driver and its libraries"

_NVML_CODES = "nvml.h of CUDA 13, nvmlReturn_t"
_TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html"
_NODES = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (device node verification)"

NONE = Code(
    "DR100",
    "note",
    "no NVIDIA GPU here",
    "Neither a driver nor a card of NVIDIA was found. What needs none is checked: versions, variables, limits.",
    "nothing to do on a machine without a GPU; on one that has one, install NVIDIA's driver, and start a container "
    "with `--gpus all`",
    _NVML_CODES,
)
SILENT = Code(
    "DR101",
    "error",
    "the driver does not answer",
    "There are traces of a GPU (on the PCI bus, among the device files, or a loaded module), but NVIDIA's management "
    "library is missing or gives no answer. No CUDA program will start.",
    "install or load the driver; see whether `nvidia-smi` answers",
    _NVML_CODES,
)
MISMATCH = Code(
    "DR102",
    "error",
    "driver and library are of two releases",
    "The kernel module and the user-space libraries must be of one release. After an update without a restart the "
    "old module is still loaded: `Failed to initialize NVML: Driver/library version mismatch`, and CUDA error 803.",
    "restart the machine, or unload and load the nvidia modules; in a container start it again",
    _NVML_CODES,
)
DENIED = Code(
    "DR103",
    "error",
    "the GPU's device files may not be opened",
    "CUDA opens /dev/nvidiactl, /dev/nvidia0 and its siblings for reading and writing. A user or a container that may "
    "not sees no device (CUDA error 100) although the driver runs.",
    "run as a member of the files' group or change their mode; in a container use `--gpus all` rather than `--device`",
    _NODES,
)
NO_UVM = Code(
    "DR104",
    "warning",
    "/dev/nvidia-uvm is missing",
    "CUDA needs it beside /dev/nvidia0; NVML and nvidia-smi do not. Where it is missing nvidia-smi works and "
    "cuInit fails.",
    "`sudo nvidia-modprobe -u -c=0` (or `sudo modprobe nvidia-uvm`); in a container use NVIDIA's toolkit",
    _NODES,
)
STUB = Code(
    "DR105",
    "error",
    "a stub of libcuda comes first",
    "The toolkit's `stubs` folder holds a libcuda for linking only. A program that loads it gets CUDA error 34 "
    "(cudaErrorStubLibrary) or no device.",
    "take the stubs folder out of LD_LIBRARY_PATH at run time",
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html (cudaErrorStubLibrary)",
)
STUB_BESIDE = Code(
    "DR106",
    "warning",
    "a stub libcuda.so is among the library folders",
    "LD_LIBRARY_PATH names a stubs folder with a libcuda.so. What loads libcuda.so.1 (PyTorch, Triton) is not touched; "
    "what loads the plain name gets the stub.",
    "take the stubs folder out of LD_LIBRARY_PATH at run time",
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html (cudaErrorStubLibrary)",
)
LIBCUDA_OLDER = Code(
    "DR107",
    "error",
    "libcuda is older than the kernel's driver",
    "A cuda-compat package made for an older driver stands before the driver's own libcuda: CUDA error 803 (system "
    "has unsupported display driver / cuda driver combination).",
    "remove the compat folder from LD_LIBRARY_PATH (or the cuda-compat package): the driver is newer than it",
    FORWARD,
)
FORWARD_USED = Code(
    "DR108",
    "note",
    "forward compatibility is in use",
    "libcuda comes from a cuda-compat package newer than the kernel's driver. It is made for data-center cards, and "
    "lets newer CUDA releases run on the old driver.",
    "nothing to do; a newer driver would make it unnecessary",
    FORWARD,
)
FORWARD_REFUSED = Code(
    "DR109",
    "error",
    "forward compatibility on a card without it",
    "A cuda-compat package newer than the kernel's driver works on data-center cards (and a few chosen others) only; "
    "elsewhere CUDA fails with error 804 (forward compatibility was attempted on non supported HW).",
    "update the driver and remove cuda-compat",
    FORWARD,
)
WSL_DRIVER = Code(
    "DR110",
    "warning",
    "a Linux driver inside WSL2",
    "WSL2 uses the driver of Windows through /usr/lib/wsl/lib. A Linux driver installed inside shadows it.",
    "remove the Linux driver's packages inside WSL; keep NVIDIA's driver for Windows",
    "https://docs.nvidia.com/cuda/wsl-user-guide/index.html",
)
LOST = Code(
    "DR111",
    "error",
    "a GPU is lost or must be reset",
    "The driver says that a card fell off the bus or needs a reset. Nothing runs on it until then.",
    "look for its Xid in the kernel's log, end what uses it, restart the machine",
    _NVML_CODES,
)
CUT_SHORT = Code(
    "DR112",
    "warning",
    "the driver could not be read to the end",
    "The process in which NVIDIA's library was asked ended or hung before all was asked. What was known until then is "
    "shown. A card in trouble does that, and a Python module (nvidia-ml-py) that does not fit the driver; the driver "
    "may be well.",
    "see whether `nvidia-smi -q` answers; look for Xid lines in the kernel's log; update nvidia-ml-py",
    "the exit of a child process of this tool",
)
CODES = (
    NONE, SILENT, MISMATCH, DENIED, NO_UVM, STUB, STUB_BESIDE, LIBCUDA_OLDER, FORWARD_USED, FORWARD_REFUSED,
    WSL_DRIVER, LOST, CUT_SHORT,
)  # fmt: skip

_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+\.\d+(?:\.\d+)?)")
_LIBCUDA = re.compile(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)$")


def check(machine: Machine) -> Checked:
    """Look at the driver."""
    reading = machine.nvml
    module = kernel_module(machine)
    signs = signs_of_a_gpu(machine)
    libcuda, stubs = _libraries(machine)
    facts: dict[str, Any] = {
        "driver": reading.driver,
        "cuda_ceiling": reading.ceiling,
        "kernel_module": module,
        "place": machine.place,
        "libcuda": libcuda,
        "signs": signs,
        "compat_packages": compat_packages(machine),
    }
    findings: list[Finding] = []
    if reading.unavailable is not None:
        facts["unavailable"] = reading.unavailable.reason
        findings.append(_unavailable(machine, signs))
    elif reading.broken:
        findings.append(CUT_SHORT.found("driver", reading.broken))
    findings += _nodes(machine, bool(reading.devices))
    findings += _loaded(machine, libcuda, stubs, module or reading.driver)
    if machine.place == "wsl2":
        findings += _inside_wsl(libcuda)
    lost = [one for one in reading.devices if any("bus" in text or "reset" in text for text in one.problems)]
    findings += [LOST.found(f"GPU {one.index}", "; ".join(one.problems)) for one in lost]
    return Checked(facts, tuple(findings))


def kernel_module(machine: Machine) -> str:
    """Return the release of the loaded kernel module; empty where there is none."""
    text = machine.text("/proc/driver/nvidia/version")
    found = _MODULE.search(text) if isinstance(text, str) else None
    return found.group(1) if found else ""


def signs_of_a_gpu(machine: Machine) -> list[str]:
    """List what says that there is a GPU of NVIDIA, whether or not its driver answers."""
    signs = []
    cards = 0
    devices = machine.names("/sys/bus/pci/devices")
    for one in devices if isinstance(devices, list) else []:
        vendor = machine.text(f"/sys/bus/pci/devices/{one}/vendor")
        if isinstance(vendor, str) and vendor.strip() == "0x10de":
            kind = machine.text(f"/sys/bus/pci/devices/{one}/class")
            cards += isinstance(kind, str) and kind.startswith("0x03")
    if cards:
        signs.append(f"{cards} NVIDIA display or 3D controller{'s' if cards > 1 else ''} on the PCI bus")
    nodes = [one for one in _nvidia_nodes(machine) if re.fullmatch(r"nvidia(?:\d+|ctl)", one)]
    if nodes:
        signs.append(f"device files {', '.join(nodes[:4])}{' and more' if len(nodes) > 4 else ''}")
    if isinstance(machine.text("/proc/driver/nvidia/version"), str):
        signs.append("the kernel module is loaded")
    if not isinstance(machine.entry("/dev/dxg"), Unread):
        signs.append("/dev/dxg (the GPU of Windows, in WSL2)")
    return signs


def compat_packages(machine: Machine) -> dict[str, str]:
    """Find installed cuda-compat packages: their folders, and the release of their libcuda."""
    found = {}
    names = machine.names("/usr/local")
    for name in names if isinstance(names, list) else []:
        folder = f"/usr/local/{name}/compat"
        entry = machine.entry(f"{folder}/libcuda.so.1") if name.startswith("cuda") else Unread("")
        if not isinstance(entry, Unread):
            match = _LIBCUDA.search(entry.target)
            found[folder] = match.group(1) if match else "unknown"
    return found


def _nvidia_nodes(machine: Machine) -> list[str]:
    names = machine.names("/dev")
    return [one for one in names if one.startswith("nvidia")] if isinstance(names, list) else []


def _unavailable(machine: Machine, signs: list[str]) -> Finding:
    problem = machine.nvml.unavailable
    if problem is None:  # asked for only where it is there
        return NONE.found("driver", "")
    said = f"{problem.reason}; found here: {'; '.join(signs)}" if signs else problem.reason
    if machine.nvml.broken:
        return CUT_SHORT.found("driver", said, problem.remedy)
    code = {"mismatch": MISMATCH, "no_permission": DENIED, "gpu_lost": LOST}.get(problem.kind)
    if code is None:
        code = SILENT if signs or problem.kind == "other" else NONE
    return code.found("driver", said, problem.remedy)


def _nodes(machine: Machine, answers: bool) -> list[Finding]:
    nodes = _nvidia_nodes(machine)
    findings = []
    denied = []
    for name in nodes:
        entry = machine.entry(f"/dev/{name}")
        if (
            re.fullmatch(r"nvidia(?:\d+|ctl|-uvm)", name)
            and not isinstance(entry, Unread)
            and entry.kind == "device"
            and not entry.mine
        ):
            denied.append(name)
    if denied:
        listed = ", ".join(f"/dev/{one}" for one in denied)
        findings.append(DENIED.found("device files", f"this user may not read and write {listed}"))
    if answers and machine.system == "linux" and machine.place != "wsl2" and "nvidia-uvm" not in nodes:
        findings.append(NO_UVM.found("/dev/nvidia-uvm", "the driver answers, and there is no /dev/nvidia-uvm"))
    return findings


def _libraries(machine: Machine) -> tuple[str, tuple[list[str], list[str]]]:
    """Return the libcuda.so.1 that a program here would load (where links lead), and the stubs in the way."""
    named, plain = [], []
    first = ""
    for one in (machine.environment.get("LD_LIBRARY_PATH") or "").split(":"):
        folder = one.rstrip("/")
        if not folder:
            continue
        stub = folder.endswith("/stubs")
        entry = machine.entry(f"{folder}/libcuda.so.1")
        if not isinstance(entry, Unread):
            if stub or "/stubs/" in entry.target:
                named.append(folder)
            elif not first and not named:
                first = entry.target
        elif stub and not isinstance(machine.entry(f"{folder}/libcuda.so"), Unread):
            plain.append(folder)
    return first or _of_the_loader(machine), (named, plain)


def _of_the_loader(machine: Machine) -> str:
    """Ask the loader's cache for libcuda.so.1 of this machine's kind."""
    if machine.system != "linux":
        return ""
    for program in ("ldconfig", "/sbin/ldconfig"):
        done = machine.run([program, "-p"])
        if isinstance(done, Ran) and done.code == 0:
            found = re.search(r"^\s*libcuda\.so\.1 \([^)]*(?:64|AArch64)[^)]*\) => (\S+)", done.out, re.MULTILINE)
            if not found:
                return ""
            entry = machine.entry(found.group(1))
            return found.group(1) if isinstance(entry, Unread) else entry.target
    return ""


def _loaded(machine: Machine, libcuda: str, stubs: tuple[list[str], list[str]], module: str) -> list[Finding]:
    findings = []
    named, plain = stubs
    if named:
        findings.append(STUB.found("LD_LIBRARY_PATH", f"{', '.join(named)} holds a libcuda.so.1 that is a stub"))
    if plain:
        findings.append(STUB_BESIDE.found("LD_LIBRARY_PATH", f"{', '.join(plain)} holds a libcuda.so that is a stub"))
    match = _LIBCUDA.search(libcuda)
    own, kernel = release(match.group(1)) if match else (), release(module)
    if not own or not kernel or own == kernel:
        return findings
    said = f"libcuda is {'.'.join(match.group(1).split('.')) if match else ''} ({libcuda}), the driver {module}"
    if own < kernel:
        findings.append(LIBCUDA_OLDER.found("libcuda", said))
        return findings
    names = [one.name for one in machine.nvml.devices if one.name]
    if any(is_consumer(one) for one in names):
        findings.append(FORWARD_REFUSED.found("libcuda", f"{said}, the card {names[0]}"))
    elif names and all(is_data_center(one) for one in names):
        findings.append(FORWARD_USED.found("libcuda", said))
    elif "compat" in libcuda:
        findings.append(
            FORWARD_USED.found("libcuda", f"{said}; whether this card has forward compatibility is not known here")
        )
    else:
        findings.append(MISMATCH.found("libcuda", said))
    return findings


def _inside_wsl(libcuda: str) -> list[Finding]:
    if libcuda and "/wsl/" not in libcuda:
        return [WSL_DRIVER.found("libcuda", f"programs here load {libcuda}, not the one in /usr/lib/wsl/lib")]
    return []
