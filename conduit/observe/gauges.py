"""Gauges that are computed when somebody scrapes: health and topology (chapter 50, 2.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conduit.observe import families
from conduit.observe.counters import Key
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
