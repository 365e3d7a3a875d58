"""vLLM's metrics endpoint: the KV cache's fill, preemptions and queues.

Names per version, from vllm/v1/metrics/loggers.py and vllm/engine/metrics.py of the releases: the fill is
``vllm:gpu_cache_usage_perc`` up to 0.11.2 and ``vllm:kv_cache_usage_perc`` from 0.9.2 on, in both a share from 0 to 1;
preemptions are ``vllm:num_preemptions_total`` (the client library adds ``_total`` to a counter).
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from importlib.util import find_spec

from oortriage.errors import UsageError
from oortriage.watch.sample import EngineLoad

USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
PREEMPTIONS = ("vllm:num_preemptions_total", "vllm:num_preemptions")
RUNNING, WAITING = ("vllm:num_requests_running",), ("vllm:num_requests_waiting",)
_MOST_BYTES = 8 << 20
_SECONDS = 2.0


class EngineSource:
    """One endpoint. It is asked directly: no proxy, no redirect, no other scheme than http and https."""

    def __init__(self, url: str, get: Callable[[str], str] | None = None) -> None:
        """Check the address.

        Raises:
            UsageError: it is no http address, or prometheus-client is missing.
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--metrics {url}: write http://HOST:PORT/metrics")
        self._url = url if parts.path.strip("/") else urllib.parse.urlunsplit(parts._replace(path="/metrics"))
        if find_spec("prometheus_client") is None:
            raise UsageError("--metrics needs prometheus-client: pip install 'oortriage[watch]'")
        self._get = get or _fetch

    def read(self) -> EngineLoad:
        """Ask once; a failure is a value."""
        try:
            text = self._get(self._url)
        except (OSError, http.client.HTTPException, ValueError) as problem:
            reason = getattr(problem, "reason", None) or problem
            return EngineLoad(problem=f"metrics endpoint does not answer: {reason}"[:500])
        return parse(text)


def parse(text: str) -> EngineLoad:
    """Read the endpoint's text format; engines and models behind one endpoint are joined."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, list[float]] = {}
    wanted = {*USAGE, *PREEMPTIONS, *RUNNING, *WAITING}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in wanted and 0 <= sample.value < float("inf"):
                    found.setdefault(sample.name, []).append(sample.value)
    except Exception as problem:  # noqa: BLE001 (the parser raises whatever the text trips it over)
        return EngineLoad(problem=f"metrics endpoint: not Prometheus text: {problem}"[:500])
    usage = _first(found, USAGE)
    if not found:
        return EngineLoad(problem="the endpoint has none of vLLM's metrics")
    return EngineLoad(
        kv_usage=min(max(usage), 1.0) if usage else None,
        preemptions=_sum(_first(found, PREEMPTIONS)),
        running=_sum(_first(found, RUNNING)),
        waiting=_sum(_first(found, WAITING)),
    )


def _first(found: dict[str, list[float]], names: tuple[str, ...]) -> list[float]:
    """Return the values of the first name that is there: releases 0.9.2 to 0.11.2 give the fill under both."""
    return next((found[name] for name in names if name in found), [])


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object, **_more: object) -> None:
        return None


def _fetch(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    with opener.open(url, timeout=_SECONDS) as answer:
        data: bytes = answer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES >> 20} MiB of metrics")
    return data.decode("utf-8", "replace")
