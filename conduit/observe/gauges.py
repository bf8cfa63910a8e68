"""Gauges that are computed when somebody scrapes: health and topology (chapter 50, 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conduit.config import Config
from conduit.config.address import parse_socket_address
from conduit.lookup.cache.store import ACTIVE_REAPER, WHEN_FULL, Gauges
from conduit.lookup.caches import CacheRegistry
from conduit.observe import families
from conduit.observe.counters import Key
from conduit.observe.events.hub import EventHub
from conduit.observe.events.sink import SinkCounters
from conduit.observe.families import Family
from conduit.snapshot import SnapshotRef
from conduit.upstream.health.registry import HealthRegistry, active_by_pool
from conduit.upstream.health.state import BackendHealth
from conduit.upstream.pool import first_attempt_weights

Reading = Callable[[], Mapping[Key, float]]


def health_readings(health: HealthRegistry, snapshots: SnapshotRef) -> dict[Family, Reading]:
    """Return the readings of the health and pool families; rows only for current backends."""

    def by_backend(value: Callable[[BackendHealth], float | None]) -> Reading:
        def read() -> dict[Key, float]:
            rows: dict[Key, float] = {}
            for entry in health.entries():
                number = value(entry)
                if number is not None:
                    rows[(entry.backend.pool, entry.backend.label)] = number
            return rows

        return read

    def weights() -> dict[Key, float]:
        return {
            (pool.name, backend.label): weight
            for pool in snapshots.current.pools.pools
            if pool.health_enabled
            for backend, weight in first_attempt_weights(pool, health)
        }

    def active() -> dict[Key, float]:
        return {(pool,): count for pool, count in active_by_pool(health.entries()).items()}

    def configured() -> dict[Key, float]:
        return {(pool.name,): len(pool.backends) for pool in snapshots.current.pools.pools}

    return {
        families.HEALTH_OBSERVED: by_backend(lambda e: e.observed),
        families.HEALTH_APPLIED: by_backend(lambda e: e.applied),
        families.HEALTH_AUTOMATIC: by_backend(lambda e: not e.frozen),
        families.HEALTH_EWMA: by_backend(lambda e: e.ewma_ms),
        families.HEALTH_TRANSITIONS: by_backend(lambda e: e.transitions),
        families.HEALTH_WEIGHT: weights,
        families.POOL_BACKENDS_ACTIVE: active,
        families.POOL_BACKENDS_CONFIGURED: configured,
    }


def cache_readings(caches: CacheRegistry) -> dict[Family, Reading]:
    """Return the readings of the cache instances."""

    def by_cache(value: Callable[[Gauges], float]) -> Reading:
        return lambda: {
            (name,): value(cache.store.gauges()) for name, cache in caches.caches.items()
        }

    def evictions() -> dict[Key, float]:
        rows: dict[Key, float] = {}
        for name, cache in caches.caches.items():
            events = cache.events
            for reason, count in (
                (WHEN_FULL, events.when_full),
                (ACTIVE_REAPER, events.active_reaper),
            ):
                if count:
                    rows[(name, reason)] = count
        return rows

    def errors() -> dict[Key, float]:
        return {
            (name, "capacity_pressure"): cache.events.lmdb_errors
            for name, cache in caches.caches.items()
            if cache.events.lmdb_errors
        }

    return {
        families.CACHE_ENTRIES: by_cache(lambda g: g.entries),
        families.CACHE_ENTRIES_LIMIT: by_cache(lambda g: g.entries_limit),
        families.CACHE_BYTES_USED: by_cache(lambda g: g.bytes_used),
        families.CACHE_BYTES_LIMIT: by_cache(lambda g: g.bytes_limit),
        families.CACHE_LMDB_SHARDS: by_cache(lambda g: g.lmdb_shards),
        families.CACHE_EVICTIONS: evictions,
        families.CACHE_LMDB_ERRORS: errors,
    }


def event_readings(events: EventHub) -> dict[Family, Reading]:
    """Return the readings of the event sinks."""

    def by_sink(value: Callable[[SinkCounters], float]) -> Reading:
        return lambda: {(name,): value(counts) for name, counts in events.counters().items()}

    return {
        families.EVENTS_ENQUEUED_QUERY: by_sink(lambda counts: counts.enqueued_query),
        families.EVENTS_ENQUEUED_RESPONSE: by_sink(lambda counts: counts.enqueued_response),
        families.EVENTS_QUEUE_DROPPED: by_sink(lambda counts: counts.queue_dropped),
        families.EVENTS_DELIVERED: by_sink(lambda counts: counts.delivered),
    }


def topology_readings(snapshots: SnapshotRef) -> dict[Family, Reading]:
    """Return the readings that describe the active configuration."""

    def config() -> Config:
        return snapshots.current.config

    def listener_info() -> dict[Key, float]:
        block = config().listeners
        return {
            (
                entry.label,
                entry.address,
                entry.name or "",
                _protocol(entry.is_tcp),
                _bind_family(entry.address),
                "true" if entry.resolved_reuse_port(block) else "false",
            ): 1
            for entry in block.listeners
        }

    def threads() -> dict[Key, float]:
        block = config().listeners
        return {
            (entry.label, _protocol(entry.is_tcp)): entry.resolved_threads(block)
            for entry in block.listeners
        }

    def receive_buffers() -> dict[Key, float]:
        block = config().listeners
        return {
            (entry.label, _protocol(entry.is_tcp)): entry.resolved_rcvbuf(block)
            for entry in block.listeners
        }

    def backend_info() -> dict[Key, float]:
        return {
            (pool.name, backend.label, backend.address, backend.name or ""): 1
            for pool in config().pools
            for backend in pool.backends
        }

    def weights() -> dict[Key, float]:
        return {
            (pool.name, backend.label): backend.effective_weight
            for pool in config().pools
            for backend in pool.backends
        }

    return {
        families.LISTENER_INFO: listener_info,
        families.LISTENER_THREADS: threads,
        families.LISTENER_RCVBUF: receive_buffers,
        families.BACKEND_INFO: backend_info,
        families.BACKEND_WEIGHT: weights,
    }


def _protocol(is_tcp: bool) -> str:
    return "tcp" if is_tcp else "udp"


def _bind_family(address: str) -> str:
    try:
        return "v6" if ":" in parse_socket_address(address).host else "v4"
    except ValueError:
        # a reload may name an address that no socket could be bound to
        return "v4"
