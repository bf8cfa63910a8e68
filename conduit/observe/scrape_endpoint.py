"""Keeps the scrape listener in step with the configuration: bind before swap (chapter 50, 2.12)."""

from __future__ import annotations

from collections.abc import Callable

from conduit.config import Config
from conduit.observe.logging import get_log
from conduit.observe.plan import resolve_plan
from conduit.observe.prometheus_server import PrometheusServer

_log = get_log("conduit_metrics")


class ScrapeEndpoint:
    """The scrape listener of the process, present while metrics and an address are configured."""

    def __init__(self, page: Callable[[], bytes]) -> None:
        self._page = page
        self._server: PrometheusServer | None = None

    def start(self, config: Config) -> None:
        """Open the listener at process start; a bind failure is logged and DNS goes on."""
        address, path = _wanted(config)
        if not address:
            return
        try:
            self._serve(PrometheusServer(address, path, self._page))
        except (OSError, ValueError) as error:
            _log.error("prometheus metrics bind failed at startup", address=address, error=error)
            return
        _log.info("prometheus metrics listening", address=address, path=path)

    def prepare(self, config: Config) -> tuple[Callable[[], None], Callable[[], None]]:
        """Bind what `config` wants; returns the switch to make after the swap, and the way back.

        Raises OSError when the new address cannot be bound; nothing has changed then.
        """
        address, path = _wanted(config)
        current = self._server
        if current is not None and address == current.address:
            return lambda: current.set_path(path), _nothing
        if not address:
            return self.close, _nothing
        replacement = PrometheusServer(address, path, self._page)

        def switch() -> None:
            self.close()
            self._serve(replacement)
            _log.info("prometheus metrics rebound to new address", address=address, path=path)

        return switch, replacement.close

    def close(self) -> None:
        """Close the listener, if there is one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _serve(self, server: PrometheusServer) -> None:
        server.start()
        self._server = server


def _nothing() -> None:
    """There is nothing to give back."""


def _wanted(config: Config) -> tuple[str, str]:
    metrics = config.metrics
    if metrics is None or metrics.prometheus is None or not resolve_plan(metrics).enabled:
        return "", ""
    return metrics.prometheus.listen_address, metrics.prometheus.path or "/metrics"
