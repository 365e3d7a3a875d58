"""``oortriage snapshot``: what a PyTorch memory snapshot says about a failed request."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import Sink


class SnapshotFormat(str, Enum):
    """Formats of snapshot."""

    text = "text"
    json = "json"
    markdown = "markdown"
    svg = "svg"


def snapshot(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A file of torch.cuda.memory._dump_snapshot(), or its dictionary as JSON; gzip, zstd and xz are read "
            "as they are; - is standard input.",
        ),
    ],
    request: Annotated[
        str,
        typer.Option("--request", help="Ask about a request of this size (2GiB) instead of the recorded failure."),
    ] = "",
    free: Annotated[
        str, typer.Option("--free", help="What the card has free (1.5GiB), where the file does not say.")
    ] = "",
    device: Annotated[int | None, typer.Option("--device", help="Only this device.", min=0)] = None,
    format: Annotated[SnapshotFormat, typer.Option("--format", "-f", help="Output format.")] = SnapshotFormat.text,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
) -> None:
    """Read a PyTorch memory snapshot: pools, fragmentation, owners, the peak, and why a request failed.

    The file is read as data; nothing in it is executed, and a pickle that names a class is refused.
    Ends with 0 when no request failed, 1 when a cause was found, 3 when it could not be told, 2 when the file
    cannot be read.

    Example: `oortriage snapshot oom.pickle`, `oortriage snapshot oom.pickle --request 4GiB --free 1GiB`.
    """
    from oortriage.report.snapshot import snapshot_report
    from oortriage.snapshot.analyse import analyse
    from oortriage.snapshot.source import read_snapshot

    wanted, left = _size(request, "--request"), _size(free, "--free")
    if wanted == 0:
        raise typer.BadParameter("a request of nothing", param_hint="--request")
    found = analyse(read_snapshot(file), file, request=wanted, free=left, device=device)
    Sink(output).put(snapshot_report(found, format.value))
    raise typer.Exit(found.exit_code)


def _size(text: str, option: str) -> int | None:
    """Read a size with its unit; None where none is given."""
    from oortriage.errors import UsageError
    from oortriage.evidence.values import parse_size

    if not text:
        return None
    try:
        size = parse_size(text)
    except ValueError:
        raise UsageError(f"{option}: not a size: {text!r}; write 2GiB, 512MiB or a count of bytes") from None
    if not 0 <= size < 2**63:
        raise UsageError(f"{option}: not a size of memory: {text!r}")
    return size
