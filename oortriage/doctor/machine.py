"""The one place where the doctor reads the world: files, variables, limits, the driver, other programs.

Nothing here raises: what cannot be read is an :class:`Unread` with a reason. Tests put a made machine in its place.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from oortriage.doctor.interpreter import Installed, look
from oortriage.doctor.outside import Ran, Unread, run
from oortriage.doctor.reading import Reading, told
from oortriage.gpu import nvml_trouble as trouble
from oortriage.gpu.nvml_trouble import Place

#: Bytes read of one file: kernel logs are longer than all else that is read.
_MOST_TEXT = 8 << 20
_NVML_SECONDS = 45.0
_COMMAND_SECONDS = 10.0
#: As ``-m``, which would take modules from the current folder.
_READ_NVML = (
    "import sys; sys.path = [one for one in sys.path if one]; from oortriage.doctor.reading import main; main()"
)
#: Needs no GPU, as torch.cuda.get_arch_list() would.
_ASK_TORCH = (
    "import sys; sys.path = [one for one in sys.path if one]; import torch; "
    "print('architectures:', torch._C._cuda_getArchFlags() or '')"
)
_TORCH_SECONDS = 60.0
#: Kernel logs that distributions write, where neither dmesg nor the journal may be read.
_KERNEL_LOGS = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")

LimitName = Literal["memlock", "nofile", "core", "stack", "nproc"]


class Entry(msgspec.Struct, frozen=True):
    """A place in the file system. ``target`` is where links lead; ``mine``: readable and writable by this user."""

    kind: Literal["file", "folder", "device", "pipe", "other"]
    mine: bool
    target: str


class Space(msgspec.Struct, frozen=True):
    """A file system's size and free part, bytes."""

    total: int
    free: int


class KernelLog(msgspec.Struct, frozen=True):
    """Lines of the kernel, and where they were read."""

    text: str
    found: str


class Machine:
    """This machine, read when first asked."""

    def __init__(self, python: Path | None = None, dmesg: Path | None = None, topo: Path | None = None) -> None:
        """Keep what the user names.

        Args:
            python: another environment's interpreter; this one's when left out.
            dmesg: a file with kernel messages, read in place of this machine's.
            topo: a file with the output of ``nvidia-smi topo -p2p r``, read in place of the driver's word.
        """
        self.python, self.dmesg, self.topo = python, dmesg, topo

    @cached_property
    def environment(self) -> Mapping[str, str]:
        """The variables of this process: those that a program started here would have."""
        return dict(os.environ)

    @cached_property
    def system(self) -> str:
        """The system, as Python names it: ``linux``."""
        return sys.platform

    @cached_property
    def place(self) -> Place:
        """Whether this is a machine of its own, a container or WSL2."""
        return trouble.this_place()

    @cached_property
    def nvml(self) -> Reading:
        """What NVIDIA's management library says."""
        if self.system == "darwin":
            return Reading(unavailable=trouble.no_such_system())
        command = [sys.executable, "-X", "faulthandler", "-c", _READ_NVML]
        return told(self.run(command, _NVML_SECONDS), _NVML_SECONDS)

    @cached_property
    def installed(self) -> Installed | Unread:
        """What is installed beside the interpreter."""
        return look(str(self.python or sys.executable), dict(self.environment))

    @cached_property
    def asked_architectures(self) -> tuple[str, ...] | Unread:
        """Ask torch itself what it was compiled for, in a child: where its files do not say it."""
        done = self.run([str(self.python or sys.executable), "-c", _ASK_TORCH], _TORCH_SECONDS)
        if isinstance(done, Unread):
            return done
        found = re.search(r"^architectures: ([\w ]+)$", done.out, re.MULTILINE)
        if not found:
            return Unread(_why("torch", done))
        return tuple(found.group(1).split())

    def text(self, path: str) -> str | Unread:
        """Read a file, its first mebibytes."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123 (a path of ours, as text for the made machine's sake)
                return file.read(_MOST_TEXT).decode("utf-8", "replace")
        except OSError as problem:
            return _unread(path, problem)

    def names(self, path: str) -> list[str] | Unread:
        """List a folder."""
        try:
            return sorted(os.listdir(path))  # noqa: PTH208
        except OSError as problem:
            return _unread(path, problem)

    def entry(self, path: str) -> Entry | Unread:
        """Look at a place."""
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116
            kind: Literal["file", "folder", "device", "pipe", "other"] = "other"
            if stat.S_ISREG(mode):
                kind = "file"
            elif stat.S_ISDIR(mode):
                kind = "folder"
            elif stat.S_ISCHR(mode):
                kind = "device"
            elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                kind = "pipe"
            return Entry(kind, os.access(path, os.R_OK | os.W_OK), os.path.realpath(path))
        except OSError as problem:
            return _unread(path, problem)

    def space(self, path: str) -> Space | Unread:
        """Ask a file system for its size."""
        try:
            told = shutil.disk_usage(path)
        except OSError as problem:
            return _unread(path, problem)
        return Space(told.total, told.free)

    def limit(self, name: LimitName) -> tuple[int | None, int | None] | Unread:
        """Return a limit of this process, soft and hard; None is unlimited."""
        try:
            import resource
        except ImportError:
            return Unread("this system has no such limits", "missing")
        try:
            soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
        except (OSError, ValueError, AttributeError) as problem:
            return Unread(f"the limit cannot be read: {problem}")
        return (
            None if soft == resource.RLIM_INFINITY else soft,
            None if hard == resource.RLIM_INFINITY else hard,
        )

    def run(self, command: Sequence[str], seconds: float = _COMMAND_SECONDS) -> Ran | Unread:
        """Run a program, with a time limit."""
        return run(command, seconds, self.environment)

    def kernel_log(self) -> KernelLog | Unread:
        """Return the kernel's messages: the file that was named, dmesg, the journal, or a log file."""
        if self.dmesg is not None:
            text = self.text(str(self.dmesg))
            return text if isinstance(text, Unread) else KernelLog(text, "the file given")
        reasons = []
        for command in (["dmesg"], ["journalctl", "-k", "-b", "-q", "--no-pager", "-n", "20000"]):
            done = self.run(command)
            if isinstance(done, Ran) and done.code == 0 and done.out.strip():
                return KernelLog(done.out, command[0])
            reasons.append(_why(command[0], done))
        for path in _KERNEL_LOGS:
            text = self.text(path)
            if isinstance(text, str) and text.strip():
                return KernelLog(text, path)
        reasons.append("no kernel log under /var/log may be read")
        return Unread("; ".join(reasons), "denied")


def _why(name: str, done: Ran | Unread) -> str:
    if isinstance(done, Unread):
        return done.reason
    said = (done.err.strip().splitlines() or ["no output"])[-1]
    return said if said.startswith(name) else f"{name}: {said}"


def _unread(path: str, problem: OSError) -> Unread:
    if isinstance(problem, FileNotFoundError):
        return Unread(f"{path} is not there", "missing")
    if isinstance(problem, PermissionError):
        return Unread(f"{path} may not be read", "denied")
    return Unread(f"{path}: {problem.strerror or problem}")
