"""Options that the patch verbs share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class PatchFormat(str, Enum):
    """Formats of the patch verbs."""

    text = "text"
    json = "json"


Format = Annotated[PatchFormat, typer.Option("--format", "-f", help="Output format.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")]
Folder = Annotated[
    Path | None, typer.Option("--vllm-source", "--source", help="An unpacked vLLM: the folder that holds the package.")
]
Python = Annotated[
    Path | None, typer.Option("--python", help="The interpreter of another environment: /path/to/venv/bin/python.")
]
