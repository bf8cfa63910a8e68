"""The `runtime` object of scripts: pools and backends as they stand (chapter 35 section 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conduit.upstream.backend import Backend
from conduit.upstream.health.registry import HealthRegistry
from conduit.upstream.health.state import Liveness
from conduit.upstream.outstanding import OutstandingTable
from conduit.upstream.pool import Pool, PoolTable

if TYPE_CHECKING:
    from conduit.transaction import Transaction

_TEXT = {Liveness.UP: "up", Liveness.DOWN: "down", Liveness.UNKNOWN: "unknown"}


class BackendRuntime:
    """One backend at the start of the hook; the values of an unknown one are neutral."""

    __slots__ = ("_entry", "_known", "_outstanding")

    def __init__(
        self, backend: Backend | None, health: HealthRegistry | None, outstanding: int
    ) -> None:
        self._known = backend is not None
        entry = health.get(backend) if backend is not None and health is not None else None
        # values are copied: later probe results must not show in this hook
        self._entry = (
            (
                entry.observed,
                entry.applied,
                entry.frozen,
                entry.factor,
                entry.ewma_ms,
                entry.last_transition,
            )
            if entry is not None
            else None
        )
        self._outstanding = outstanding

    def configured(self) -> bool:
        """True for a backend of the configuration."""
        return self._known

    def applied(self) -> str:
        """Return `up`, `down` or `unknown`."""
        if self._entry is not None:
            return _TEXT[self._entry[1]]
        return "up" if self._known else "unknown"

    def observed(self) -> str:
        """Return `up`, `down` or `unknown`."""
        return _TEXT[self._entry[0]] if self._entry is not None else "unknown"

    def eligible(self) -> bool:
        """True when Route may choose it."""
        return self._known and (self._entry is None or self._entry[1] is Liveness.UP)

    def frozen(self) -> bool:
        """True while an operator has frozen it."""
        return self._entry is not None and self._entry[2]

    def weight_factor(self) -> float:
        """Return the damped latency factor."""
        return self._entry[3] if self._entry is not None else 1.0

    def outstanding(self) -> int:
        """Return the forwards in flight to its address."""
        return self._outstanding

    def latency_ewma_ms(self) -> float | None:
        """Return the latency average, or unit before the first sample."""
        return self._entry[4] if self._entry is not None else None

    def last_transition_unix_ms(self) -> int | None:
        """Return the time of the last transition, or unit before the first."""
        at = self._entry[5] if self._entry is not None else None
        return None if at is None else int(at * 1000)


class PoolRuntime:
    """One pool at the start of the hook."""

    __slots__ = ("_backends", "_pool", "_with_health")

    def __init__(
        self, pool: Pool | None, backends: list[BackendRuntime], with_health: bool
    ) -> None:
        self._pool = pool
        self._backends = backends
        self._with_health = with_health

    def configured(self) -> bool:
        """True for a pool of the configuration."""
        return self._pool is not None

    def configured_count(self) -> int:
        """Return the number of backends."""
        return len(self._backends)

    def eligible_count(self) -> int:
        """Return the number of eligible backends."""
        return sum(backend.eligible() for backend in self._backends)

    def fail_open_active(self) -> bool:
        """True when Route takes every backend because too few are eligible."""
        pool = self._pool
        if pool is None or not self._with_health:
            return False
        return len(self._backends) <= 1 or self.eligible_count() < max(1, pool.min_eligible)

    def min_latency_ewma_ms(self) -> float | None:
        """Return the smallest latency average, or unit without one."""
        samples = [b.latency_ewma_ms() for b in self._backends]
        return min((s for s in samples if s is not None), default=None)

    def max_outstanding(self) -> int:
        """Return the largest number of forwards in flight to one address."""
        return max((b.outstanding() for b in self._backends), default=0)


class RoutingRuntime:
    """Pools and backends by name, built when asked for and kept for the hook."""

    __slots__ = ("_counts", "_health", "_made", "_pools")

    def __init__(
        self, pools: PoolTable, health: HealthRegistry | None, table: OutstandingTable | None
    ) -> None:
        self._pools = pools
        self._health = health
        self._counts = table.counts() if table is not None else {}
        self._made: dict[tuple[str, str], BackendRuntime] = {}

    def pool(self, name: str) -> PoolRuntime:
        """Return the view of a pool; an unknown one is empty."""
        pool = self._pools.get(name)
        if pool is None:
            return PoolRuntime(None, [], False)
        views = [self._view(backend) for backend in pool.backends]
        return PoolRuntime(pool, views, pool.health_enabled and self._health is not None)

    def backend(self, pool: str, identity: str) -> BackendRuntime:
        """Return the view of a backend by label or address; an unknown one is empty."""
        found = self._pools.get(pool)
        if found is not None:
            for backend in found.backends:
                if backend.label == identity:
                    return self._view(backend)
            for backend in found.backends:
                if identity in (backend.key, str(backend.address)):
                    return self._view(backend)
        return BackendRuntime(None, None, 0)

    def backend_for_attempt(self, pool: str, identity: str) -> BackendRuntime:
        """Return the view of a backend; empty when either argument is."""
        return self.backend(pool, identity) if pool and identity else BackendRuntime(None, None, 0)

    def _view(self, backend: Backend) -> BackendRuntime:
        key = (backend.pool, backend.key)
        view = self._made.get(key)
        if view is None:
            outstanding = self._counts.get(backend.key, 0)
            view = self._made[key] = BackendRuntime(backend, self._health, outstanding)
        return view


class RuntimeView:
    """The `runtime` object: one for all scripts of a hook."""

    __slots__ = ("_routing", "_txn")

    def __init__(self, txn: Transaction) -> None:
        self._txn = txn
        self._routing: RoutingRuntime | None = None

    def config_generation(self) -> int:
        """Return the generation of the transaction's snapshot."""
        return self._txn.snapshot.generation

    def routing(self) -> RoutingRuntime:
        """Return the pools and backends."""
        if self._routing is None:
            environment = self._txn.environment
            self._routing = RoutingRuntime(
                self._txn.snapshot.pools, environment.health, environment.outstanding
            )
        return self._routing
