"""``oortriage device``: this machine's NVIDIA devices, as the driver states them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Sink


class DeviceFormat(str, Enum):
    """Formats of device."""

    text = "text"
    json = "json"


def device(
    format: Annotated[DeviceFormat, typer.Option("--format", "-f", help="Output format.")] = DeviceFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Show the NVIDIA devices here: memory, who holds it, MIG, driver, and what CUDA_VISIBLE_DEVICES leaves.

    Ends with 0 when there are devices, 3 when they cannot be read; then it says why and what would help.
    """
    from oortriage.gpu.device import devices
    from oortriage.gpu.nvml_trouble import Unavailable
    from oortriage.report.device import device_report

    found = devices()
    Sink(output).put(device_report(found, format.value))
    raise typer.Exit(3 if isinstance(found, Unavailable) else 0)
