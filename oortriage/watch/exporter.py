"""A Prometheus exporter: what was read and what follows from it, in bytes and seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec

from oortriage.errors import UsageError
from oortriage.version import __version__
from oortriage.watch.rules import RULES
from oortriage.watch.sample import EngineLoad, GroupMemory, Sample
from oortriage.watch.summary import Row, row
from oortriage.watch.view import Finding
from oortriage.watch.watcher import Event, Watcher

#: Of each scope: what its metrics begin with, the name of the value, its words, and the labels.
_SCOPES = {
    "device": ("oortriage_device_memory", "used_bytes", "Memory in use on a device", ("gpu", "device")),
    "process": ("oortriage_process_device_memory", "bytes", "Device memory of a process", ("gpu", "pid", "process")),
    "host": (
        "oortriage_process_host_memory",
        "anonymous_bytes",
        "Anonymous resident main memory of a process",
        ("pid", "process"),
    ),
    "group": (
        "oortriage_cgroup_memory",
        "working_set_bytes",
        "A control group's memory in use less cache",
        ("cgroup",),
    ),
}


class _State(msgspec.Struct, frozen=True):
    """What a scrape answers from; put in place whole, so that a scrape never sees half a sample."""

    rows: list[Row]
    findings: list[Finding]
    groups: tuple[GroupMemory, ...]
    engine: EngineLoad | None
    samples: int
    errors: int
    time_s: float
    cpu_s: float


class Exporter:
    """Answers scrapes from a thread of its own; ``port`` is the one it got."""

    def __init__(self, address: str, port: int) -> None:
        """Listen; port 0 is any free one.

        Raises:
            UsageError: prometheus-client is missing, or the address cannot be had.
        """
        if find_spec("prometheus_client") is None:
            raise UsageError("--prometheus needs prometheus-client: pip install 'oortriage[watch]'")
        from prometheus_client import CollectorRegistry, start_http_server

        self._state: _State | None = None
        self._errors = 0
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise UsageError(f"--prometheus {address}:{port}: {reason}") from problem
        self.port: int = self._server.server_port

    def show(self, sample: Sample, _events: Sequence[Event], watcher: Watcher) -> None:
        """Take over what the watcher holds after a sample."""
        problem = bool(sample.problems) or bool(sample.engine and sample.engine.problem)
        self._errors += problem
        self._state = _State(
            [row(one) for one in watcher.view.watched.values()],
            watcher.firing(),
            sample.groups,
            sample.engine,
            watcher.samples,
            self._errors,
            sample.time_s,
            time.process_time(),
        )

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def describe(self) -> list[Any]:
        """Declare nothing: the registry then does not collect on registration."""
        return []

    def collect(self) -> Iterator[Any]:
        """Give the metric families of the last sample; called by the registry at each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        yield InfoMetricFamily("oortriage_watch", "The release of oortriage that watches", {"version": __version__})
        state = self._state
        if state is None:
            return
        yield CounterMetricFamily("oortriage_watch_samples", "Samples taken", state.samples)
        yield CounterMetricFamily("oortriage_watch_sample_errors", "Samples with something unreadable", state.errors)
        yield CounterMetricFamily("oortriage_watch_cpu_seconds", "Processor time of the watching itself", state.cpu_s)
        yield GaugeMetricFamily(
            "oortriage_watch_last_sample_timestamp_seconds", "When the last sample was taken", state.time_s
        )
        for scope in _SCOPES:
            yield from _families(scope, [one for one in state.rows if one.scope == scope])
        kills = CounterMetricFamily("oortriage_cgroup_oom_kills", "Processes the kernel killed", labels=["cgroup"])
        for group in state.groups:
            if group.oom_kills is not None:
                kills.add_metric([group.path], group.oom_kills)
        yield kills
        yield from _engine(state.engine or EngineLoad())
        count = GaugeMetricFamily("oortriage_alerts_firing", "Findings of a rule that fire now", labels=["code"])
        each = GaugeMetricFamily(
            "oortriage_alert_firing", "1 for a finding that fires", labels=["code", "gpu", "pid", "subject"]
        )
        for rule in RULES:
            count.add_metric([rule.CODE], sum(one.code == rule.CODE for one in state.findings))
        for one in state.findings:
            each.add_metric([one.code, one.gpu, "" if one.pid is None else str(one.pid), one.subject], 1)
        yield count
        yield each


def _families(scope: str, rows: list[Row]) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    begin, value, words, labels = _SCOPES[scope]

    def family(name: str, text: str, values: list[tuple[Row, float | None]]) -> Any:
        made = GaugeMetricFamily(f"{begin}_{name}", text, labels=list(labels))
        for one, number in values:
            if number is not None:
                made.add_metric([_label(one, label) for label in labels], number)
        return made

    yield family(value, words, [(one, one.now_bytes) for one in rows])
    if scope == "device":
        yield family("size_bytes", "Memory of a device", [(one, one.limit_bytes) for one in rows])
        yield family("free_bytes", "Free memory of a device", [(one, one.left_bytes) for one in rows])
    if scope == "group":
        yield family("limit_bytes", "The limit of a control group", [(one, one.limit_bytes) for one in rows])
    judged = [one for one in rows if one.trend.kind != "young"]
    for end, which, number in (
        ("growth", "fitted slope", "slope"),
        ("growth_low", "lower end of the slope's 95 % interval", "low"),
        ("growth_high", "upper end of the slope's 95 % interval", "high"),
    ):
        text = f"{words}: {which} over the window"
        yield family(f"{end}_bytes_per_second", text, [(one, getattr(one.trend, number)) for one in judged])
    text = f"{words}: seconds until what is left is used up; only while it grows steadily"
    yield family("until_full_seconds", text, [(one, one.full_in_s) for one in rows])


def _label(one: Row, label: str) -> str:
    if label == "gpu":
        return one.gpu
    return str(one.pid) if label == "pid" else one.name


def _engine(engine: EngineLoad) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    for name, text, value in (
        ("oortriage_engine_kv_cache_usage_ratio", "Share of vLLM's KV blocks in use", engine.kv_usage),
        ("oortriage_engine_requests_running", "Requests that run in vLLM", engine.running),
        ("oortriage_engine_requests_waiting", "Requests that wait in vLLM", engine.waiting),
    ):
        made = GaugeMetricFamily(name, text)
        if value is not None:
            made.add_metric([], value)
        yield made
    preempted = CounterMetricFamily("oortriage_engine_preemptions", "Requests whose KV blocks vLLM took away")
    if engine.preemptions is not None:
        preempted.add_metric([], engine.preemptions)
    yield preempted
