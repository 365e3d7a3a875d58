"""What nobody checked, said as plainly as what was: a reader must not take silence for proof."""

from __future__ import annotations

from oortriage.replay.reproduce import Reproduction
from oortriage.report.document import Block, Items, Paragraph
from oortriage.report.material import Material

#: What a kernel runs out of: only that can be compiled again.
_KERNEL = frozenset({"shared_memory", "tensor_memory", "registers", "threads"})
_NO_KERNEL = "not run: no kernel ran out here, so there is none to compile"
_HELD = {
    "computed": "there is no printed figure that the computed one was held against",
    "not_reproduced": "the printed figure was not reproduced",
    "reproduced_with_other_settings": "the settings that give the printed figure are not those the log names",
    "failed": "the kernel could not be compiled",
}


def not_verified_blocks(material: Material) -> list[Block]:
    """List each step that was not run, each layer that was not run, and what the log lacks."""
    kernel = material.diagnosis.resource in _KERNEL
    told = _reproduction(material.reproduction, kernel=kernel)
    if material.experiment is None:
        needs = "not run: no other settings were compiled (`oortriage experiment`)"
        told.append(f"experiment {needs if kernel else _NO_KERNEL}")
    elif material.experiment.live is None:
        told.append("experiment: no setting was launched on a card; its bytes are the compiler's (`--live`)")
    if material.verification is None:
        needs = "not run: no fix was held against the original (`oortriage patch verify`)"
        told.append(f"verification {needs if kernel else 'not run: there is no patch for this failure'}")
    else:
        told += [
            f"verification, layer {one.name}: not run, {one.detail}"
            for one in material.verification.layers
            if one.status == "not_run"
        ]
    told += [f"the log lacks: {one}" for one in material.diagnosis.missing]
    return [Items(told)] if told else [Paragraph("Every step was run; the log lacks nothing that would tell more.")]


def _reproduction(result: Reproduction | None, *, kernel: bool) -> list[str]:
    if result is None:
        needs = "not run: the kernel was not compiled again (`oortriage reproduce`)"
        return [f"reproduction {needs if kernel else _NO_KERNEL}"]
    told = [f"reproduction: {_HELD[result.verdict]}"] if result.verdict in _HELD else []
    if result.live is None:
        told.append("reproduction: not launched on a card; its bytes are the compiler's (`--live`)")
    return told
