"""What to do, the first thing first and to be copied, and what not to do."""

from __future__ import annotations

from oortriage.report.document import Block, Code, Items
from oortriage.report.material import Material
from oortriage.triage.diagnosis import Prescription


def change_blocks(material: Material) -> list[Block]:
    """Give each change as code, with its effect, its cost and the check."""
    return [Code(one.change, f"{at}. {_told(one)}") for at, one in enumerate(material.diagnosis.prescriptions, 1)]


def _told(one: Prescription) -> str:
    parts = [
        one.effect,
        f"cost: {one.cost}" if one.cost else "",
        one.safety.replace("_", " ") if one.safety != "safe" else "",
        f"verify: {one.verify}" if one.verify else "",
    ]
    return "; ".join(part.rstrip(".") for part in parts if part) + "."


def will_not_help_blocks(material: Material) -> list[Block]:
    """List the advice that has no effect here, and why."""
    told = [f"{one.advice}: {one.why}" for one in material.diagnosis.will_not_help]
    return [Items(told)] if told else []
