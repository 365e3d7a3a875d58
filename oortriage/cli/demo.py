"""``oortriage demo``: the whole story of a log that ships with the tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Color, FormatName, say, style_for, write
from oortriage.errors import UsageError


def demo_log() -> Path:
    """Return the bundled log: a vLLM server on Tesla T4 cards, shaped like vLLM issue #36802."""
    here = Path(__file__).resolve().parent.parent
    packaged = here / "_data" / "demo" / "vllm-t4.log"
    if packaged.is_file():
        return packaged
    return here.parent / "fixtures" / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt"


def demo(
    format: Annotated[
        FormatName, typer.Option("--format", "-f", help="Text tells the whole story; any other format, the verdict.")
    ] = FormatName.text,
    color: Annotated[Color, typer.Option("--color", help="Colours in text output.")] = Color.auto,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the report and the log into this folder.")
    ] = None,
    show_log: Annotated[bool, typer.Option("--log", help="Print the bundled log instead.")] = False,
    quick: Annotated[bool, typer.Option("--verdict", help="Print the verdict alone, and compile nothing.")] = False,
) -> None:
    """Tell a whole case on a bundled log: a vLLM server on Tesla T4 cards dies on its first request.

    Verdict, the bytes buffer by buffer, what moves them, the patch, the report; each with the command to type.
    Always ends with 0. No GPU and no network are needed; where Triton is missing, what would be compiled is left out.
    """
    from oortriage.api import default_analyzer

    if show_log:
        say(demo_log().read_bytes().decode(), end="")  # carriage returns as they are: lines are counted by them
        return
    if output is not None and (quick or format is not FormatName.text):
        raise UsageError("--output goes with the whole story, in text")
    diagnosis = default_analyzer().file(demo_log(), name="vllm-t4.log")
    style = style_for(color, None)
    if quick or format is not FormatName.text:
        write([diagnosis], format.value, style, None)
        return
    from oortriage.cli.demo_story import tell

    tell(diagnosis, demo_log(), style, output)
