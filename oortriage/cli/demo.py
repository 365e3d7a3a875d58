"""``oortriage demo``: the main job on a log that ships with the tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Color, FormatName, say, style_for, write


def demo_log() -> Path:
    """Return the bundled log: a vLLM server on Tesla T4 cards, shaped like vLLM issue #36802."""
    here = Path(__file__).resolve().parent.parent
    packaged = here / "_data" / "demo" / "vllm-t4.log"
    if packaged.is_file():
        return packaged
    return here.parent / "fixtures" / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt"


def demo(
    format: Annotated[FormatName, typer.Option("--format", "-f", help="Output format.")] = FormatName.text,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
    show_log: Annotated[bool, typer.Option("--log", help="Print the bundled log instead of its verdict.")] = False,
) -> None:
    """Analyze a bundled log: a vLLM server on Tesla T4 cards dies on its first request.

    Always ends with 0. No GPU and no network are needed.
    """
    from oortriage.api import default_analyzer

    if show_log:
        say(demo_log().read_text(encoding="utf-8"), end="")
        return
    diagnosis = default_analyzer().file(demo_log(), name="vllm-t4.log")
    write([diagnosis], format.value, style_for(color, None), None)
