"""The running daemon: start order, signals, shutdown order (chapter 10 sections 2.3 and 2.4)."""

from __future__ import annotations

import gc
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from conduit.config import Config, ConfigError, LoadedConfig, config_base_dir, load_file
from conduit.control.configurator import Configurator, Prepared, PrepareError
from conduit.lookup.cache.errors import CacheError
from conduit.observe import families
from conduit.observe.counters import CounterRegistry, Key
from conduit.observe.events.hub import pending_changes
from conduit.observe.logging import configure, get_log
from conduit.observe.otlp_push import OtlpPush
from conduit.observe.plan import resolve_plan
from conduit.observe.scrape_endpoint import ScrapeEndpoint
from conduit.policy.compile import CompileError
from conduit.runtime.bind import BindError
from conduit.runtime.dataplane import Dataplane
from conduit.runtime.heap import use_one_heap
from conduit.runtime.processor import ProcessorKeeper
from conduit.runtime.service_manager import ServiceManager, WatchdogThread
from conduit.snapshot import SnapshotRef, compile_snapshot

if TYPE_CHECKING:
    from conduit.control.server import ControlServer
    from conduit.observe.exposition import ExpositionCollector

_log = get_log("conduit")

_STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
_SIGNALS = _STOP_SIGNALS | {signal.SIGHUP}


def run_service(path: str, demo: str | None) -> int:
    """Start the service on the file at `path`, serve until a signal, and return the exit code.

    `demo` is the address of the demo upstream, or None.
    """
    # taken by sigwait below; set first, so that no early signal is lost or kills the process
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    loaded = _load(path)
    if loaded is None:
        return 1
    config = loaded.config
    configure(config.logging.level, config.logging.output)
    for warning in loaded.warnings:
        _log.warn(str(warning))
    _raise_descriptor_limit()
    use_one_heap()
    ProcessorKeeper().start()
    try:
        service = _Service(path, loaded)
    except CompileError as error:
        pointer = f"{error.pointer}\n" if error.pointer else ""
        sys.stderr.write(f"{path}: {error}\n{pointer}Error: config compile failed\n")
        return 1
    except CacheError as error:
        _log.error("cache store cannot be opened", error=error)
        sys.stderr.write(f"Error: {error}\n")
        return 1
    try:
        service.start(demo)
    except (BindError, OSError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    service.wait_for_stop()
    service.stop()
    return 0


def _load(path: str) -> LoadedConfig | None:
    try:
        return load_file(path)
    except ConfigError as error:
        lines = [str(diagnostic) for diagnostic in error.diagnostics]
        if error.stage == "validation":
            sys.stderr.write(f"config invalid: {'; '.join(lines)}\nError: config invalid\n")
        else:
            for line in lines:
                sys.stderr.write(f"Error: {line}\n")
        return None


class _Service:
    """Everything the daemon runs, in start order."""

    def __init__(self, path: str, loaded: LoadedConfig) -> None:
        self._started_wall = time.time()
        self._started = time.monotonic()
        self._config = loaded.config
        self._path = path
        self._manager = ServiceManager.from_environment()
        self._counters = CounterRegistry()
        self._metric_plan = resolve_plan(loaded.config.metrics)
        self._exposition: ExpositionCollector | None = None
        self._exposition_lock = threading.Lock()
        self._snapshots = SnapshotRef(compile_snapshot(loaded.config, 1, loaded.base_dir))
        self._dataplane = Dataplane(self._snapshots, self._counters, loaded.base_dir)
        self._scrape = ScrapeEndpoint(self._page)
        self._push = OtlpPush(lambda: self._collector().collect())
        self._configurator = Configurator(
            path,
            self._snapshots,
            loaded=loaded,
            prepare=[
                self._prepare_scrape,
                self._prepare_dataplane,
                self._prepare_metric_plan,
            ],
            on_reload=self._on_reload,
        )
        self._control: ControlServer | None = None
        self._stop_demo: Callable[[], None] = lambda: None
        self._watchdog: WatchdogThread | None = None

    def start(self, demo: str | None) -> None:
        """Start everything; raises BindError or OSError when DNS cannot be served."""
        if demo is not None:
            self._start_demo(demo)
        self._configurator.start()
        self._dataplane.start()
        _log.info("dataplane listeners started")
        self._manager.ready()
        self._scrape.start(self._config)
        self._push.follow(self._config)
        self._start_control()
        for warning in self._snapshots.current.warnings:
            _log.warn(warning)
        if self._manager.watchdog_interval is not None:
            self._watchdog = WatchdogThread(self._manager, self._dataplane.is_alive)
            self._watchdog.start()
        if demo is not None:
            self._print_demo(demo)
        # what start-up built lives as long as the process: keep the collector off it
        gc.collect()
        gc.freeze()

    def _start_control(self) -> None:
        block = self._config.control
        if block is None:
            _log.info(
                "control plane disabled: apply, export, reload and trace are unavailable; "
                "adding a control section needs a restart"
            )
            return
        # gRPC is imported where there is a control plane: it costs time and memory
        from conduit.control.server import ControlServer

        control = ControlServer(
            block,
            config_base_dir(self._path),
            self._configurator,
            self._snapshots,
            self._dataplane.health,
            self._dataplane.tracer.store,
        )
        if control.start():
            self._control = control

    def wait_for_stop(self) -> None:
        """Handle signals until one of them asks for a stop."""
        while True:
            received = signal.sigwait(_SIGNALS)
            if received == signal.SIGHUP:
                self._configurator.reload_soon()
                continue
            _log.info("shutdown signal received", signal=signal.Signals(received).name)
            return

    def stop(self) -> None:
        """Shut down in the order of chapter 10 section 2.4."""
        self._manager.stopping()
        _log.info("stopping services")
        self._scrape.close()
        self._push.stop()
        if self._control is not None:
            self._control.stop()
        self._configurator.stop()
        shutdown = self._snapshots.current.config.shutdown_or_default()
        if shutdown.drain:
            self._dataplane.drain(shutdown.drain_timeout_ms / 1000, _second_stop_signal)
        self._dataplane.stop()
        self._stop_demo()
        _log.info("services stopped")

    def _page(self) -> bytes:
        # prometheus_client is imported when somebody scrapes, not at every start
        from conduit.observe.exposition import render

        return render(self._collector())

    def _collector(self) -> ExpositionCollector:
        from conduit.observe.exposition import ExpositionCollector
        from conduit.observe.gauges import (
            cache_readings,
            event_readings,
            health_readings,
            topology_readings,
        )
        from conduit.observe.process import process_readings

        with self._exposition_lock:
            if self._exposition is None:
                slots = self._dataplane.slots
                self._exposition = ExpositionCollector(
                    self._counters,
                    {
                        families.SLOTS_IN_USE: lambda: {(): slots.in_use},
                        families.SLOTS_CAPACITY: lambda: {(): slots.capacity},
                        families.SLOT_POOL_EXHAUSTED: lambda: {(): slots.exhausted},
                        families.CONFIG_GENERATION: lambda: {(): self._configurator.generation},
                        families.FORWARD_OUTSTANDING: self._outstanding,
                        families.START_TIME: lambda: {(): self._started_wall},
                        families.UPTIME: lambda: {(): time.monotonic() - self._started},
                        **health_readings(self._dataplane.health, self._snapshots),
                        **topology_readings(self._snapshots),
                        **cache_readings(self._dataplane.caches),
                        **event_readings(self._dataplane.events),
                        **process_readings(),
                    },
                    self._metric_plan,
                )
            return self._exposition

    def _prepare_metric_plan(self, previous: Config, new: Config) -> Callable[[], None]:
        plan = resolve_plan(new.metrics)

        def switch() -> None:
            if self._exposition is not None or self._metric_plan.enabled:
                self._collector().change_plan(plan)
            self._metric_plan = plan
            self._push.follow(new)

        return switch

    def _outstanding(self) -> dict[Key, float]:
        counts = self._dataplane.outstanding.counts()
        return {
            (pool.name, backend.label): counts[backend.key]
            for pool in self._snapshots.current.pools.pools
            for backend in pool.backends
            if backend.key in counts
        }

    def _prepare_scrape(self, previous: Config, new: Config) -> Callable[[], None]:
        try:
            return Prepared(*self._scrape.prepare(new))
        except (OSError, ValueError) as error:
            _log.warn("export rebind prepare failed; rejecting apply", error=error)
            address = (
                new.metrics.prometheus.listen_address
                if (new.metrics and new.metrics.prometheus)
                else "-"
            )
            raise PrepareError(
                f"metrics.prometheus.listen_address {address}: cannot bind: {error}"
            ) from error

    def _prepare_dataplane(self, previous: Config, new: Config) -> Callable[[], None]:
        try:
            switch_caches = self._dataplane.caches.prepare(new.caches, config_base_dir(self._path))
        except CacheError as error:
            raise PrepareError(str(error)) from error

        def switch() -> None:
            switch_caches()
            self._dataplane.follow(new)
            if pending_changes(self._dataplane.events.events, new.events):
                _log.info("events: pending (restart required) — filters follow, sinks do not")
            if self._config.tracing != new.tracing:
                _log.info("tracing: pending (restart required) — stored, not in force")

        return switch

    def _on_reload(self, begins: bool) -> None:
        if begins:
            self._manager.reloading()
        else:
            self._manager.ready()

    def _start_demo(self, address: str) -> None:
        from conduit.runtime.demo import DemoUpstream

        demo = DemoUpstream(address)
        demo.start()
        self._stop_demo = demo.stop

    def _print_demo(self, address: str) -> None:
        listener = next(iter(self._config.listeners.listeners), None)
        if listener is None:
            return
        host, _, port = listener.address.rpartition(":")
        host = {"0.0.0.0": "127.0.0.1", "[::]": "::1"}.get(host, host.strip("[]"))
        sys.stdout.write(
            f"\nDNS Conduit is serving; the demo upstream for demo.test. is on {address}.\n"
            f"Try:  dig @{host} -p {port} www.demo.test A\n\n"
        )
        sys.stdout.flush()


def _raise_descriptor_limit() -> None:
    """Use what the hard limit allows: each worker and each TCP client needs a descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        _log.debug("cannot raise the descriptor limit", error=error)


def _second_stop_signal() -> bool:
    return signal.sigtimedwait(_STOP_SIGNALS, 0) is not None
