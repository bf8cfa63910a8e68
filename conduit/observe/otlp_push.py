"""The OTLP/HTTP push of metrics: a thread of its own, one request an interval (chapter 50, 2.10).

A receiver that is down costs a log line an interval; nothing is buffered or tried again, because
the next push carries the cumulative values.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from conduit.config import Config, Otel
from conduit.observe.logging import get_log
from conduit.observe.plan import resolve_plan

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_log = get_log("conduit_metrics")

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_TIMEOUT_SECONDS = 10.0

Gather = Callable[[], Iterable["Metric"]]


class PushTask(threading.Thread):
    """Pushes to one endpoint; `settings` may change while it runs."""

    def __init__(self, settings: Otel, gather: Gather) -> None:
        super().__init__(name="conduit-otlp", daemon=True)
        self.settings = settings
        self._gather = gather
        self._stop_requested = threading.Event()
        self._started_ns = time.time_ns()

    def run(self) -> None:
        endpoint = self.settings.endpoint
        try:
            import requests

            from conduit.observe.otlp_encoding import encode

            session = requests.Session()
        except Exception as error:
            _log.error("failed to build OTLP metric exporter", error=error, endpoint=endpoint)
            return
        _log.info("otel metrics push started", endpoint=endpoint)
        while not self._stop_requested.wait(self._interval):
            settings = self.settings
            try:
                body = encode(
                    self._gather(),
                    settings.resource_attributes,
                    self._started_ns,
                    time.time_ns(),
                )
                response = session.post(
                    endpoint,
                    data=body,
                    headers=_headers(settings),
                    timeout=min(_TIMEOUT_SECONDS, self._interval),
                    verify=not settings.allow_invalid_certs,
                    allow_redirects=False,
                )
                if not 200 <= response.status_code < 300:
                    raise OSError(f"HTTP status {response.status_code}")
            except Exception as error:
                if not self._stop_requested.is_set():
                    _log.warn("otel metrics push failed", error=error, endpoint=endpoint)
                continue
            _log.debug("otel metrics push ok", endpoint=endpoint)
        _log.debug("otel metrics push stopped", endpoint=endpoint)

    @property
    def _interval(self) -> float:
        return max(1.0, self.settings.effective_push_interval_ms / 1000)

    def stop(self) -> None:
        """End the thread; a push in progress is left to end with the process."""
        self._stop_requested.set()


def _headers(settings: Otel) -> dict[str, str]:
    headers = {"Content-Type": "application/x-protobuf"}
    for name, value in settings.headers.items():
        # what is no legal HTTP header is skipped silently
        if _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value):
            headers[name] = value
    return headers


class OtlpPush:
    """Keeps the push task in step with the configuration (chapter 50 section 2.12)."""

    def __init__(self, gather: Gather) -> None:
        self._gather = gather
        self._task: PushTask | None = None

    def follow(self, config: Config) -> None:
        """Start, stop, replace or adjust the task for a configuration just installed."""
        wanted = _wanted(config)
        task = self._task
        if task is not None and wanted is not None:
            current = task.settings
            same_client = (
                current.endpoint == wanted.endpoint
                and current.allow_invalid_certs == wanted.allow_invalid_certs
            )
            if same_client:
                task.settings = wanted
                return
        self.stop()
        if wanted is not None:
            self._task = PushTask(wanted, self._gather)
            self._task.start()

    def stop(self) -> None:
        """End the task, if there is one, without waiting for a push in progress."""
        if self._task is not None:
            self._task.stop()
            self._task = None


def _wanted(config: Config) -> Otel | None:
    metrics = config.metrics
    if metrics is None or metrics.otel is None or not metrics.otel.endpoint:
        return None
    return metrics.otel if resolve_plan(metrics).enabled else None
