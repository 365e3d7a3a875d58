"""Whatever files, variables and versions hold, every check gives a value, and every report can be written."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.report.doctor import doctor_report
from oortriage.report.doctor_issue import issue_block
from tests.doctor.made import Made, h100, reading, refused, software, whole

#: Letters of the texts that are read, and some that are in none.
TEXT = st.text(st.sampled_from("0123456789abcdefgmxX:/,=.-+ \n\t\x00\x1b\udc80é[]()<>GPUMIGTrueFals"), max_size=40)
FILES = (
    "/proc/self/cgroup", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory.stat", "/proc/meminfo", "/proc/driver/nvidia/version", "/proc/7/comm",
    "/tmp/nvidia-mps/control", "/sys/bus/pci/devices/x/vendor", "/sys/bus/pci/devices/x/class", "/dev/dxg",
)  # fmt: skip
VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF", "LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "VLLM_X", "NCCL_P2P_DISABLE",
    "CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING",
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(
    files=st.dictionaries(st.sampled_from(FILES), TEXT),
    environment=st.dictionaries(st.sampled_from(VARIABLES), TEXT),
    version=TEXT,
    requirement=TEXT,
    topo=st.none() | TEXT,
    place=st.sampled_from(["machine", "container", "wsl2"]),
    there=st.booleans(),
)
def test_every_machine_is_an_answer(
    files: dict[str, str],
    environment: dict[str, str],
    version: str,
    requirement: str,
    topo: str | None,
    place,
    there: bool,
) -> None:
    found = whole(
        Made(
            nvml=reading(h100(), h100(1)) if there else refused(12),
            files=files,
            environment=environment,
            installed=software(version, "13.0", versions={"triton": version}, requires={"torch": (requirement,)}),
            topo=topo,
            place=place,
            log=requirement,
        )
    )
    text = doctor_report(found, "text")
    assert "\x1b" not in text
    assert "\x00" not in text
    json.loads(doctor_report(found, "json"))
    assert issue_block(found).count("```") == 2
