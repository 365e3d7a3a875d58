"""/dev/shm: where processes of one server share memory of the host."""

from __future__ import annotations

from oortriage.doctor.finding import Checked, Code
from oortriage.doctor.machine import Machine
from oortriage.doctor.outside import Unread
from oortriage.doctor.sizes import size

NAME = "shm"
TITLE = "/dev/shm"

_PATH = "/dev/shm"
_SMALL = 1 << 30
_DOCS = "https://docs.docker.com/reference/cli/docker/container/run/ (--shm-size, 64 MB by default)"

SMALL = Code(
    "DR401",
    "warning",
    "/dev/shm is small",
    "Data loaders, NCCL's shared-memory transport and vLLM's workers put blocks there. Docker and Kubernetes give a "
    "container 64 MB: `Bus error`, `No space left on device`, `unable to open shared memory object`. It is the host's "
    "memory and has nothing to do with the shared memory of a GPU's block.",
    "`docker run --shm-size 10g` or `--ipc=host`; in Kubernetes mount an emptyDir with medium Memory at /dev/shm",
    _DOCS,
)
FULL = Code(
    "DR402",
    "warning",
    "/dev/shm is nearly full",
    "Blocks that a killed server left behind stay until somebody removes them.",
    "look for leftovers (`ls -l /dev/shm`), remove those of programs that no longer run, or make it larger",
    _DOCS,
)
ABSENT = Code(
    "DR403",
    "error",
    "there is no /dev/shm",
    "POSIX shared memory needs it: multi-process servers and data loaders fail at once.",
    "mount it: `sudo mount -t tmpfs -o size=10g tmpfs /dev/shm`",
    "man 7 shm_overview",
)
CODES = (SMALL, FULL, ABSENT)


def check(machine: Machine) -> Checked:
    """Look at its size and use."""
    if machine.system != "linux":
        return Checked(not_checked=((TITLE, f"{machine.system} has none"),))
    space = machine.space(_PATH)
    if isinstance(space, Unread):
        if space.kind == "missing":
            return Checked(findings=(ABSENT.found(_PATH, "the folder is not there"),))
        return Checked(not_checked=((TITLE, space.reason),))
    facts = {"total_bytes": space.total, "free_bytes": space.free}
    findings = []
    if space.total < _SMALL:
        findings.append(SMALL.found(_PATH, f"it holds {size(space.total)}, {size(space.free)} are free"))
    if space.total and space.free < space.total // 10:
        findings.append(FULL.found(_PATH, f"{size(space.free)} of {size(space.total)} are free"))
    return Checked(facts, tuple(findings))
