"""Facts that no line states but several together prove, each marked with how sure it is."""

from __future__ import annotations

import re

from oortriage.evidence.fact import Fact
from oortriage.gpu import specs
from oortriage.intake.log import Log
from oortriage.triage.case import Facts

#: Line of ``raise OutOfResources(..., "shared memory")`` in triton/compiler/compiler.py, read in wheels.
TRITON_RAISE_LINES = {
    568: "2.1.0",
    248: "2.3.1",
    374: "3.0.0",
    388: "3.2.0",
    401: "3.3.1",
    483: "3.4.0",
    456: "3.6.0",
}
#: Line of the NVML assertion in CUDACachingAllocator.cpp, read in wheels; 1154 is two releases.
NVML_ASSERT_LINES = {
    830: "2.2.2",
    844: "2.3.1",
    838: "2.4.0",
    995: "2.5.1",
    1016: "2.7.0",
    1131: "2.8.0",
    1123: "2.9.1",
    1165: "2.11.0",
    1319: "2.12.1",
}
_NVML = re.compile(r"NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"[^\"]{0,200}CUDACachingAllocator\.cpp\":(\d+)")
_PYTHON = re.compile(r"python(3\.\d+)[/\\]")
_HEAD = re.compile(r"gemma[-_ ]?[23]", re.IGNORECASE)


def derive(log: Log, facts: Facts) -> None:
    """Add derived facts: versions from traceback lines, capability from the card, and so on."""
    _from_frames(log, facts)
    _capability(log, facts)
    _dtype(facts)


def _add(facts: Facts, log: Log, name: str, value: str, line: int, sure: float, source: str) -> None:
    facts.add(Fact(name, value, log.name, line, sure, source))


def _from_frames(log: Log, facts: Facts) -> None:
    for stream in log.streams:
        for raised in stream.raised:
            at = stream.lines[raised.last].number
            for frame in raised.frames:
                if frame.file.endswith("triton/compiler/compiler.py") and frame.function in (
                    "_init_handles",
                    "raise_",
                ):
                    version = TRITON_RAISE_LINES.get(frame.line)
                    if version:
                        _add(facts, log, "triton_version", version, at, 0.6, "traceback line number")
                if found := _PYTHON.search(frame.file):
                    _add(facts, log, "python_version", found.group(1), at, 0.9, "path in a traceback")
        for found in _NVML.finditer(stream.text):
            version = NVML_ASSERT_LINES.get(int(found.group(1)))
            line, _ = stream.line_at(found.start())
            if version:
                _add(
                    facts,
                    log,
                    "torch_version",
                    version,
                    line.number,
                    0.6,
                    "source line of the assertion",
                )


def _capability(log: Log, facts: Facts) -> None:
    card = facts.fact("gpu")
    if card is None:
        return
    architecture = specs.by_card(str(card.value))
    if architecture:
        sure = min(0.95, card.confidence)
        _add(
            facts,
            log,
            "compute_capability",
            architecture.name,
            card.line,
            sure,
            f"card {card.value}",
        )


def _dtype(facts: Facts) -> None:
    """A cast decides the type the kernels run in, whatever the model's files or the flag say."""
    to = facts.fact("dtype_to")
    if to is not None:
        name = str(to.value).removeprefix("torch.")
        facts.add(Fact("dtype", name, to.file, to.line, max(0.98, to.confidence), "cast"))
