"""What lint says: a finding, and everything that was found in a run. The JSON is a public contract."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = "1.0"
Severity = Literal["error", "warning", "info"]


class Finding(msgspec.Struct, frozen=True):
    """One finding.

    ``subject`` is the flag, variable or value it is about. ``since`` and ``until`` are the first and the last vLLM
    release that has the subject, for a name or a value; for a contradiction or a myth, in which it holds. Empty is
    open: never seen, or still so in the newest release read. ``source`` is the vLLM file and release, or the page,
    that proves it. ``file`` and ``line`` stand only where a file was read.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    since: str = ""
    until: str = ""
    source: str = ""
    file: str = ""
    line: int = 0


class Input(msgspec.Struct, frozen=True):
    """One input as it was understood. ``origin`` says where the facts about that vLLM come from."""

    name: str
    kind: str
    vllm: str
    origin: str
    commands: int
    notes: tuple[str, ...] = ()


class Lint(msgspec.Struct, frozen=True):
    """All findings of a run, in the order of the inputs."""

    schema_version: str
    inputs: tuple[Input, ...]
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """1 where anything worse than a remark was found, else 0."""
        return int(any(one.severity != "info" for one in self.findings))
