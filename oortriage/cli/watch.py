"""``oortriage watch``: memory over time, and what in it grows without end."""

from __future__ import annotations

import contextlib
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oortriage.cli.output import Color, Sink, say
from oortriage.cli.watch_options import address, duration, size
from oortriage.errors import UsageError

if TYPE_CHECKING:
    from oortriage.watch.loop import Output
    from oortriage.watch.recording import Recording
    from oortriage.watch.sample import Settings


class WatchFormat(str, Enum):
    """Formats of the end of a run."""

    text = "text"
    json = "json"


def watch(
    interval: Annotated[str, typer.Option("--interval", "-i", help="Time between samples: 500ms, 5s.")] = "",
    window: Annotated[str, typer.Option("--window", "-w", help="A leak must grow through all of it: 10m, 1h.")] = "",
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="End after this time; else with Ctrl-C.")] = "",
    pid: Annotated[
        list[int] | None, typer.Option("--pid", min=1, help="A process, with its children; may be repeated.")
    ] = None,
    gpu: Annotated[
        list[str] | None, typer.Option("--gpu", help="A device by the driver's number or UUID; may be repeated.")
    ] = None,
    metrics: Annotated[
        str, typer.Option("--metrics", metavar="URL", help="vLLM's metrics endpoint: http://localhost:8000/metrics.")
    ] = "",
    jsonl: Annotated[
        Path | None, typer.Option("--jsonl", metavar="FILE", help="Record samples and alerts, to be replayed.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write samples as a table.")] = None,
    max_bytes: Annotated[
        str,
        typer.Option("--max-bytes", metavar="SIZE", help="Most a recording takes on disk, with the older part FILE.1."),
    ] = "256MiB",
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Judge a recording instead of this machine.")
    ] = None,
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus", metavar="[ADDRESS]:PORT", help="Answer Prometheus; on loopback when no address is given."
        ),
    ] = "",
    write_dashboard: Annotated[
        Path | None,
        typer.Option(
            "--write-dashboard", metavar="DIR", help="Write the Grafana dashboard and the alert rules, and end."
        ),
    ] = None,
    min_growth: Annotated[
        str, typer.Option("--min-growth", metavar="SIZE", help="Less growth in a window is no leak. [default: 64MiB]")
    ] = "",
    horizon: Annotated[
        str, typer.Option("--horizon", metavar="TIME", help="A limit farther away is no alarm. [default: 2h]")
    ] = "",
    format: Annotated[
        WatchFormat, typer.Option("--format", "-f", help="Format of the end of the run.")
    ] = WatchFormat.text,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the end of the run to this file.")
    ] = None,
    color: Annotated[Color, typer.Option("--color", help="Colours of the live table.")] = Color.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Alerts and the end only, no line a sample.")] = False,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="List what can fire, and end.")] = False,
) -> None:
    """Watch device and main memory over time, and tell a leak from warm-up, noise and a full KV cache.

    Samples NVIDIA's driver, /proc and control groups, and vLLM's metrics where asked; fits growth with a robust slope
    and says how sure it is. Ends with 0 when nothing fired, 1 when something did, 3 when there was nothing to read,
    130 when interrupted.

    Example: `oortriage watch --for 1h --jsonl run.jsonl --metrics http://localhost:8000/metrics`.
    """  # fmt: skip
    from oortriage.report.watch import rule_lines, summary_report

    if list_rules:
        say(rule_lines(), end="")
        return
    if write_dashboard is not None:
        from oortriage.watch.shipped import write_shipped

        for path in write_shipped(write_dashboard):
            say(str(path))
        return
    from oortriage.cli.watch_screen import Silent, open_screen
    from oortriage.watch.exporter import Exporter
    from oortriage.watch.loop import Stop, run
    from oortriage.watch.loop import replay as replay_all
    from oortriage.watch.start import open_sampler, settings_of
    from oortriage.watch.summary import summarise
    from oortriage.watch.watcher import Watcher

    stop = Stop()
    recorded = _recording(replay, jsonl, csv, live=bool(gpu or metrics or for_ or prometheus))
    settings = settings_of(
        recorded.header.settings if recorded else None,
        {
            "interval_s": duration("--interval", interval),
            "window_s": duration("--window", window),
            "min_growth_bytes": size("--min-growth", min_growth),
            "horizon_s": duration("--horizon", horizon),
            "pids": tuple(pid) if pid else None,
        },
    )
    seconds, limit = duration("--for", for_), size("--max-bytes", max_bytes) or 0
    sampler, notes = (None, []) if recorded else open_sampler(settings, gpu or [], metrics)
    watcher = Watcher(settings)
    with contextlib.ExitStack() as closing:
        if sampler:
            closing.callback(sampler.close)
        screen = Silent() if recorded else open_screen(color, output, json=format is WatchFormat.json, quiet=quiet)
        outputs: list[Output] = [screen, *_files(closing, settings, limit, jsonl, csv)]
        if prometheus:
            exporter = closing.enter_context(contextlib.closing(Exporter(*address(prometheus))))
            outputs.append(exporter)
            typer.echo(f"Prometheus metrics: port {exporter.port}, path /metrics", err=True)
        began = time.process_time()
        with stop.on_signals(), screen:
            if recorded:
                replay_all(recorded, watcher, outputs, stop)
            elif sampler:
                run(sampler, watcher, outputs, stop, seconds=seconds)
        spent = time.process_time() - began
    if recorded and recorded.bad_lines:
        notes.append(f"{recorded.bad_lines} lines of the recording could not be read")
    summary = summarise(watcher, cpu_s=spent, interrupted=stop.signalled, notes=notes)
    Sink(output).put(summary_report(summary, format.value))
    raise typer.Exit(summary.exit_code)


def _recording(replay: Path | None, jsonl: Path | None, csv: Path | None, *, live: bool) -> Recording | None:
    from oortriage.watch.recording import Recording

    if replay is None:
        return None
    if live:
        raise UsageError("--replay judges a recording: --gpu, --metrics, --for and --prometheus do not go with it")
    for option, path in (("--jsonl", jsonl), ("--csv", csv)):
        if path and path.resolve() == replay.resolve():
            raise UsageError(f"{option} {path}: that is the recording itself")
    return Recording(replay)


def _files(
    closing: contextlib.ExitStack, settings: Settings, limit: int, jsonl: Path | None, csv: Path | None
) -> list[Output]:
    from oortriage.watch.recording import Recorder
    from oortriage.watch.table_file import TableFile

    if jsonl and csv and jsonl.resolve() == csv.resolve():
        raise UsageError(f"--jsonl and --csv name one file: {jsonl}")
    found: list[Output] = []
    if jsonl:
        found.append(closing.enter_context(contextlib.closing(Recorder(jsonl, limit, settings))))
    if csv:
        found.append(closing.enter_context(contextlib.closing(TableFile(csv, limit))))
    return found
