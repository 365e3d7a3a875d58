"""Where it happened and how to see it again: the log's facts, the machine, commands and versions."""

from __future__ import annotations

import shlex

from oortriage.report.document import Block, Code, Items, Table
from oortriage.report.material import Material
from oortriage.version import __version__


def environment_blocks(material: Material) -> list[Block]:
    """Tabulate what the log says with the lines that say it, and the machine that wrote the report."""
    blocks: list[Block] = []
    facts = [
        [_named(name), _value(name, one.value), f"{one.file}:{one.line}", one.source, f"{one.confidence:.2f}"]
        for name, one in material.diagnosis.facts.items()
    ]
    if facts:
        heads = ["fact", "value", "line", "known from", "confidence"]
        blocks.append(Table(heads, facts, numeric=[4], caption="What the log says"))
    if material.environment:
        rows = [[name, value] for name, value in material.environment.items()]
        blocks.append(Table(["", ""], rows, caption="The machine that wrote this report; not the one that failed"))
    return blocks


def _named(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _value(name: str, value: str | float) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value:,} B"
    return str(value)


def reproduce_blocks(material: Material) -> list[Block]:
    """Give the commands, and the versions they were run with."""
    commands = material.commands or [f"oortriage analyze {shlex.quote(material.diagnosis.file)}"]
    versions = [f"oortriage {__version__}"]
    compiled = [one for one in (material.reproduction, material.experiment) if one]
    versions += [f"{one.kernel} for {one.gpu} ({one.target}): Triton {one.triton}, {one.source}" for one in compiled]
    if material.verification:
        versions.append(f"{material.verification.rule}: vLLM {material.verification.version}")
    return [Code("\n".join(commands), language="shell"), Items(list(dict.fromkeys(versions)))]
