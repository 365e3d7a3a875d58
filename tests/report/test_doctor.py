"""The doctor's words for people, scripts and issues: no secret in any, no private text in the last."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from oortriage.doctor.finding import Examination
from oortriage.doctor.outside import Ran
from oortriage.doctor.reading import told
from oortriage.report.doctor import doctor_report, doctor_schema, summary
from oortriage.report.doctor_issue import issue_block
from tests.doctor.made import Made, h100, kernel, reading, refused, software, whole
from tests.gpu.fake_nvml import GIB, cut, memory, process

#: Stands in every text of a machine that a stranger may choose.
MARK = "zzprivatezz"


def rich() -> Examination:
    """A machine that has a value for nearly every field."""
    busy = h100(MemoryInfo=memory(80 * GIB, 72 * GIB, 8 * GIB), ComputeRunningProcesses=[process(4242, 60 * GIB)])
    return whole(
        Made(
            nvml=reading(busy, h100(1, P2PStatus=5), {**cut(2), "MemoryInfo": memory(40 * GIB, 0, 40 * GIB)}),
            files={
                **kernel("580.95.05"),
                "/proc/self/cgroup": "0::/\n",
                "/sys/fs/cgroup/memory.max": str(64 * GIB),
                "/sys/fs/cgroup/memory.current": str(63 * GIB),
                "/proc/meminfo": "MemTotal: 263000000 kB\nMemAvailable: 200000000 kB\n",
            },
            environment={
                "CUDA_VISIBLE_DEVICES": f"0,{MARK}",
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
                "VLLM_LOGGING_LEVEL": "DEBUG",
                "LD_LIBRARY_PATH": f"/home/{MARK}/lib",
                "LD_PRELOAD": f"/home/{MARK}/lib.so",
                "CUDA_MPS_PIPE_DIRECTORY": f"/home/{MARK}/mps",
            },
            log=f"NVRM: Xid (PCI:0000:0b:00): 999, pid=77, name={MARK}, words\n",
            installed=software(requires={"vllm": (f"{MARK}==1.0",)}),
        )
    )


class TestIssue:
    def test_it_says_what_matters(self) -> None:
        block = issue_block(rich())
        lines = block.splitlines()
        assert lines[0] == "```text"
        assert lines[-1] == "```"
        assert "GPU 0: NVIDIA H100 80GB HBM3, capability 9.0, 80.00 GiB, 8.00 GiB free, " in block
        assert "shared memory of a block 232,448 B, MIG off" in block
        assert "driver: 580.95.05, runs CUDA up to 13.0" in block
        assert "torch was built with CUDA 13.0 for sm_75 sm_80 sm_86 sm_90 sm_100 sm_120" in block
        assert "vllm 0.22.1, torch 2.11.0, triton 3.6.0" in block
        assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in block
        assert "CUDA_VISIBLE_DEVICES: set, 1 of 3 cards seen" in block
        assert "DR321 warning: too little free memory for vLLM's default (GPU 0)" in block
        assert "limit 64.00 GiB" in block

    def test_what_somebody_chose_is_not_in_it(self) -> None:
        found = rich()
        assert MARK in doctor_report(found, "json")
        block = issue_block(found)
        for private in (MARK, "/home", "GPU-0000", "MIG-0000", "4242", "0000:0b:00", "pid"):
            assert private not in block, private

    def test_nothing_of_another_shape_gets_through(self) -> None:
        """Whatever text stands in whatever field, odd enough that no field has its shape, it is not in the block."""
        odd = f"<{MARK} @team #1 `x`>"
        found = msgspec.structs.replace(rich(), facts=_replaced(rich().facts, odd), oortriage=odd)
        assert MARK not in issue_block(found)

    @pytest.mark.parametrize(
        ("version", "shown"),
        [
            ("2.11.0+cu130", "2.11.0+cu130"),
            ("2.9.0a0+50eac811a6.nv25.09", "2.9.0a0+50eac811a6.nv25.09"),
            ("0.22.1.dev3+g1a2b3c4d5", "0.22.1.dev3+g1a2b3c4d5"),
            ("2.11.0+acme.internal", "2.11.0 (local build)"),
            ("0.22.1", "0.22.1"),
            ("jane's build", "unknown"),
        ],
    )
    def test_versions_keep_what_makers_put_there(self, version: str, shown: str) -> None:
        facts = {"packages": {"python": "3.12.3", "versions": {"torch": version}}}
        assert f"packages: torch {shown}\n" in issue_block(msgspec.structs.replace(rich(), facts=facts))

    def test_facts_that_are_missing(self) -> None:
        found = msgspec.structs.replace(rich(), facts={}, findings=(), not_checked=())
        assert "GPU: none, or it could not be read" in issue_block(found)

    def test_no_gpu(self) -> None:
        block = issue_block(whole(Made(nvml=refused(12), entries={}, installed=software("2.11.0+cpu", ""))))
        assert "DR100 note: no NVIDIA GPU here (driver)" in block
        assert "not checked, all or in part: cards, cgroup, ecc, engine, limits, memory, mig, peer, visible" in block

    def test_it_is_one_fence_whatever_it_holds(self) -> None:
        assert issue_block(rich()).count("```") == 2


def _replaced(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, text) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, text) for one in value]
    return text if isinstance(value, str) else value


class TestReport:
    def test_json_fits_its_schema(self) -> None:
        schema = doctor_schema()
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(json.loads(doctor_report(rich(), "json")), schema)

    def test_the_first_line_says_how_it_is(self) -> None:
        assert (
            summary(whole(Made())) == "1 x NVIDIA H100 80GB HBM3, driver 580.95.05, CUDA up to 13.0: nothing is wrong."
        )
        assert "its driver does not answer" in summary(whole(Made(nvml=refused(12))))
        died = told(Ran(-11, "", ""), 9)
        assert "it could not be read: 1 warning." in summary(whole(Made(nvml=died)))

    def test_the_worst_comes_first(self) -> None:
        severities = [one.severity for one in rich().findings]
        assert severities == sorted(severities, key=["error", "warning", "note"].index)

    @pytest.mark.parametrize("name", ["text", "json"])
    def test_no_secret_in_any_format(self, name: str) -> None:
        machine = Made(
            environment={
                "VLLM_API_KEY": "sk-proj-abcdefghijklmnop1234567890",
                "CUDA_VISIBLE_DEVICES": "hf_abcdefghijklmnopqrstuvwxyz0123456789",
            }
        )
        text = doctor_report(whole(machine), name)
        assert "abcdefghijklmnop" not in text

    def test_nothing_acts_on_the_terminal(self) -> None:
        machine = Made(environment={"CUDA_VISIBLE_DEVICES": "\x1b[31m0\x07", "VLLM_X": "\x1b]0;title\x07"})
        text = doctor_report(whole(machine), "text")
        assert "\x1b" not in text
        assert "\x07" not in text

    def test_lines_keep_to_the_width(self) -> None:
        findings = doctor_report(whole(Made(nvml=reading(h100(PersistenceMode=0)))), "text", 60).split("Facts")[0]
        # An address is never broken.
        assert all(len(line) <= 60 or "://" in line for line in findings.splitlines()[1:])
