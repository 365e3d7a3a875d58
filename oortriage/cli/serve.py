"""``oortriage serve``: a page on this machine where one drops a log and reads the report."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from oortriage.cli.output import say
from oortriage.errors import UsageError


def serve(
    host: Annotated[str, typer.Option("--host", help="localhost, 127.0.0.1 or ::1; no other is taken.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="0 takes a free one.")] = 8765,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    max_upload: Annotated[
        int, typer.Option("--max-upload", min=1, metavar="MIB", help="Largest log that is taken, in MiB.")
    ] = 512,
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", help="A folder of your own rules; may be repeated.")
    ] = None,
) -> None:
    """Serve a page on this machine: drop a log, read the report, run the experiment.

    Only this machine can reach it, and only with the address that is printed to standard output. Logs and
    reports are kept in memory and are gone when the command ends, with Ctrl-C.

    Example: `oortriage serve --open`.
    """
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageError(f"serve needs {' and '.join(missing)}: pip install 'oortriage[serve]'")
    from oortriage.api import Analyzer
    from oortriage.config import find_config
    from oortriage.serve import server
    from oortriage.serve.app import build
    from oortriage.serve.limits import MIB, Limits

    opened = server.bind(host, port)
    with opened:
        folders = [*find_config().rule_folders, *(rules or [])]
        size = max_upload * MIB
        limits = Limits(upload_bytes=size, expanded_bytes=max(4 * size, Limits().expanded_bytes))
        guard = build(Analyzer(folders), limits, rule_folders=folders)
        say(server.address_of(opened, guard.token))
        typer.echo("Ctrl-C ends it; nothing is kept.", err=True)
        server.run(guard, opened, open_page=open_page)
