"""The data plane: listeners, slots and workers as one unit that starts, drains and stops."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable

from conduit.config import Config
from conduit.lookup.caches import CacheRegistry
from conduit.observe.counters import CounterRegistry
from conduit.observe.events.hub import EventHub
from conduit.observe.logging import get_log
from conduit.observe.tracing import Tracer
from conduit.pipeline import Environment
from conduit.runtime.bind import BindError, BoundListener, bind_all
from conduit.runtime.inflight import InflightLimits
from conduit.runtime.ingress import IngressContext
from conduit.runtime.slots import SlotPool
from conduit.runtime.split_pool import SplitPool
from conduit.runtime.tcp_listener import MAX_CONNECTIONS, TcpListener
from conduit.runtime.udp_listener import UdpListener
from conduit.runtime.worker_pool import WorkerPool
from conduit.snapshot import SnapshotRef
from conduit.upstream.blocking import BlockingExchanger
from conduit.upstream.health.prober import Prober
from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.settings import health_targets
from conduit.upstream.outstanding import OutstandingTable
from conduit.upstream.pool import canonical_sources
from conduit.upstream.source import SourceSelector
from conduit.upstream.tcp_connection import TcpConnectionPool

_log = get_log("conduit_core")

#: Largest default size of the elastic worker pool (design 3.3).
WORKERS_MAX_DEFAULT = 256
_DRAIN_POLL_SECONDS = 0.01
# a listener gives a sign of life at least once a second
_ALIVE_SECONDS = 5.0


class Dataplane:
    """Serves DNS; runtime, sizes and sockets are fixed from the first snapshot."""

    def __init__(
        self,
        snapshots: SnapshotRef,
        counters: CounterRegistry,
        base_dir: str = ".",
    ) -> None:
        """`base_dir` is where relative paths of the configuration start.

        Raises CacheError when a cache's store cannot be opened.
        """
        self._snapshots = snapshots
        config = snapshots.current.config
        self._config = config
        self._counters = counters
        capacity = max(1, config.orchestrator.txn_table_capacity)
        self.slots = SlotPool(capacity)
        self.outstanding = OutstandingTable(capacity)
        self._connections = TcpConnectionPool()
        self.health = HealthRegistry()
        self.health.reconcile(health_targets(config))
        self._prober = Prober(self.health, counters)
        self.caches = CacheRegistry(_lookup_concurrency(config))
        self.caches.prepare(config.caches, base_dir)()
        #: The dnstap sinks; those of the start until the process ends.
        self.events = EventHub(config.events, base_dir)
        self.tracer = Tracer(config.tracing)
        self._environment = Environment(
            health=self.health,
            outstanding=self.outstanding,
            caches=self.caches,
            events=self.events if config.events.sinks else None,
            tracer=self.tracer if self.tracer.enabled else None,
        )
        self.workers = self._new_workers()
        self._listeners: list[UdpListener | TcpListener] = []

    def start(self) -> None:
        """Bind every listener and start serving; raises BindError and leaves nothing open."""
        config = self._config
        _check_sources(config)
        self._log_summary()
        bound = bind_all(config.listeners)
        connections = _connections_per_acceptor(sum(b.threads for b in bound if b.config.is_tcp))
        context = IngressContext(
            self._snapshots,
            self.slots,
            self._counters,
            self.workers.submit,
            remember_packets=not self.tracer.enabled,
        )
        for listener in bound:
            self._listeners.extend(_build(listener, context, connections))
            protocol = "tcp" if listener.config.is_tcp else "udp"
            _log.info(f"Starting listening on {listener.bound_text} {protocol}")
        self.workers.start()
        for thread in self._listeners:
            thread.start()
        self._prober.start()
        self.caches.start()
        self.events.start()
        if not bound:
            _log.warn("no listeners configured: no DNS is served")

    def follow(self, config: Config) -> None:
        """Bring what lives outside the snapshot in step with a configuration just installed."""
        self.health.reconcile(health_targets(config))
        self._prober.follow()

    def is_alive(self) -> bool:
        """True while every listener thread gives signs of life: what feeds the watchdog."""
        limit = time.monotonic() - _ALIVE_SECONDS
        return all(thread.is_alive() and thread.last_alive >= limit for thread in self._listeners)

    def drain(self, timeout: float, aborted: Callable[[], bool]) -> bool:
        """Wait until no transaction is active (chapter 20 section 4.7).

        Polls every 10 ms: drained, aborted, deadline, in this order; a `timeout` of 0 seconds
        means exactly one poll. Listeners keep serving meanwhile. True when drained.
        """
        deadline = time.monotonic() + timeout
        while True:
            active = self.slots.in_use
            if active == 0:
                _log.debug("drained")
                return True
            if aborted():
                _log.warn("drain aborted by a second signal", remaining=active)
                return False
            if time.monotonic() >= deadline:
                _log.warn("drain timed out", remaining=active)
                return False
            time.sleep(_DRAIN_POLL_SECONDS)

    def stop(self) -> None:
        """Tear down listeners and workers; transactions still running get no reply."""
        for thread in self._listeners:
            thread.stop()
        for thread in self._listeners:
            thread.join(2.0)
            thread.close()
        self._prober.stop()
        self.workers.stop()
        self._connections.close()
        self.caches.close()
        self.events.stop()

    def _new_workers(self) -> WorkerPool | SplitPool:
        config = self._config
        dataplane = config.dataplane_or_default()
        if dataplane.resolved_runtime == "split_io":
            limits = {
                pool.name: pool.max_inflight
                for pool in config.pools
                if pool.max_inflight is not None
            }
            return SplitPool(
                self._environment,
                self.slots,
                self._counters,
                self.outstanding,
                InflightLimits(limits),
                self._new_sources,
                max(1, dataplane.policy_workers),
                max(1, dataplane.io_workers),
            )
        workers_max = dataplane.workers_max or min(self.slots.capacity, WORKERS_MAX_DEFAULT)
        return WorkerPool(
            self._environment, self.slots, self._counters, self._new_exchanger, workers_max
        )

    def _new_sources(self) -> SourceSelector:
        forward = self._config.forward
        return SourceSelector(
            canonical_sources(forward.sources_v4, socket.AF_INET),
            canonical_sources(forward.sources_v6, socket.AF_INET6),
        )

    def _new_exchanger(self) -> BlockingExchanger:
        return BlockingExchanger(
            self.outstanding, self._connections, self._new_sources(), self._environment.clock
        )

    def _log_summary(self) -> None:
        config = self._config
        forward = config.forward
        _log.info(
            "dataplane startup summary",
            generation=self._snapshots.current.generation,
            listeners=len(config.listeners.listeners),
            pools=len(config.pools),
            rules=len(config.rules.rules),
            forward_timeout_ms=forward.timeout_ms,
            egress_sources_v4=",".join(forward.sources_v4) or None,
            egress_sources_v6=",".join(forward.sources_v6) or None,
            event_sinks=len(config.events.sinks),
            events_enabled=bool(config.events.sinks),
        )
        for entry in config.listeners.listeners:
            _log.info(
                "configured listener",
                address=entry.address,
                protocol="tcp" if entry.is_tcp else "udp",
                worker_threads=entry.resolved_threads(config.listeners),
            )


def _lookup_concurrency(config: Config) -> int:
    dataplane = config.dataplane_or_default()
    if dataplane.resolved_runtime == "split_io":
        return max(1, dataplane.policy_workers)
    block = config.listeners
    return max(1, sum(entry.resolved_threads(block) for entry in block.listeners))


def _connections_per_acceptor(acceptors: int) -> int:
    """TCP clients may take half of the descriptors; upstreams and logs need the others."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or not acceptors:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, soft // 2 // acceptors))


def _build(
    listener: BoundListener, context: IngressContext, max_connections: int
) -> list[UdpListener | TcpListener]:
    if listener.config.is_tcp:
        # the acceptors share one listening socket; each closes its own copy of it
        return [
            TcpListener(sock, listener.config, context, max_connections)
            for sock in (
                listener.sockets[0],
                *(listener.sockets[0].dup() for _ in range(listener.threads - 1)),
            )
        ]
    wildcard = listener.address.is_wildcard
    return [UdpListener(sock, listener.config, context, wildcard) for sock in listener.sockets]


def _check_sources(config: Config) -> None:
    """A configured source address that cannot be bound fails the start (chapter 20, 12.6)."""
    wanted = [
        (name, address)
        for name, lists in [
            ("forward", (config.forward.sources_v4, config.forward.sources_v6)),
            *((f"pool '{p.name}'", (p.sources_v4, p.sources_v6)) for p in config.pools),
        ]
        for addresses in lists
        for address in addresses
    ]
    for owner, address in wanted:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((address, 0))
            except OSError as error:
                cause = os.strerror(error.errno) if error.errno else str(error)
                raise BindError(
                    f"cannot bind source address {address} of {owner}: {cause}"
                ) from error
