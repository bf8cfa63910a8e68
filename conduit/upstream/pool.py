"""Pools and sticky weighted backend selection (chapter 20 section 11)."""

from __future__ import annotations

import socket
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import Protocol

from conduit.config import Pool as PoolConfig
from conduit.config.address import parse_source_address
from conduit.upstream.backend import Backend, compile_backend
from conduit.wire import Query

_MASK64 = (1 << 64) - 1


class HealthView(Protocol):
    """What selection asks of backend health; the health package implements it."""

    def is_up(self, backend: Backend) -> bool:
        """True when the applied state of `backend` is up, or when it has no record."""
        ...

    def weight_factor(self, backend: Backend) -> float | None:
        """The latency factor of `backend`, or None when latency weighting does not apply."""
        ...

    def forward_succeeded(self, backend: Backend) -> None:
        """An upstream answered a forward, whatever its rcode."""
        ...

    def forward_failed(self, backend: Backend, reason: str, query: Query, client: str) -> None:
        """A forward to `backend` failed for a `reason` that speaks of the backend."""
        ...


class Pool:
    """A named set of backends with its selection table, immutable after construction."""

    __slots__ = (
        "_cumulative",
        "_total",
        "backends",
        "health_enabled",
        "max_inflight",
        "min_eligible",
        "name",
        "sources_v4",
        "sources_v6",
    )

    def __init__(
        self,
        name: str,
        backends: Sequence[Backend],
        *,
        sources_v4: tuple[str, ...] = (),
        sources_v6: tuple[str, ...] = (),
        health_enabled: bool = False,
        min_eligible: int = 0,
        max_inflight: int | None = None,
    ) -> None:
        self.name = name
        self.backends = tuple(backends)
        self.sources_v4 = sources_v4
        self.sources_v6 = sources_v6
        self.health_enabled = health_enabled
        self.min_eligible = min_eligible
        self.max_inflight = max_inflight
        self._cumulative = list(accumulate(b.weight for b in self.backends))
        self._total = self._cumulative[-1] if self._cumulative else 0

    def select(
        self,
        transaction_id: int,
        generation: int,
        attempt_count: int,
        tried: Collection[str],
        health: HealthView | None = None,
    ) -> Backend | None:
        """Choose the backend of the next attempt, or None when the pool is exhausted.

        `tried` holds the keys of the backends that this transaction already used in this pool; it
        counts only when `attempt_count` > 0. The same arguments always give the same backend.
        """
        if health is None or not self.health_enabled:
            if attempt_count == 0:
                if not self._total:
                    return None
                pick = ((transaction_id + generation) & _MASK64) % self._total
                return self.backends[bisect_right(self._cumulative, pick)]
            members = [b for b in self.backends if b.key not in tried]
            return _walk(members, _configured_weight, transaction_id, generation)
        return self._select_by_health(transaction_id, generation, attempt_count, tried, health)

    def _select_by_health(
        self,
        transaction_id: int,
        generation: int,
        attempt_count: int,
        tried: Collection[str],
        health: HealthView,
    ) -> Backend | None:
        members = [b for b in self.backends if health.is_up(b)]
        fail_open = _fails_open(self, len(members))
        weight: Callable[[Backend], int] = _configured_weight
        if fail_open:
            members = list(self.backends)
        else:
            weight = _latency_weight(health)
        if attempt_count > 0:
            members = [b for b in members if b.key not in tried]
        return _walk(members, weight, transaction_id, generation)


def _configured_weight(backend: Backend) -> int:
    return backend.weight


def _latency_weight(health: HealthView) -> Callable[[Backend], int]:
    def weight(backend: Backend) -> int:
        factor = health.weight_factor(backend)
        if factor is None:
            return backend.weight
        # halves round away from zero; round() would round them to even
        return max(1, int(backend.weight * factor + 0.5))

    return weight


def _walk(
    members: Sequence[Backend],
    weight: Callable[[Backend], int],
    transaction_id: int,
    generation: int,
) -> Backend | None:
    if not members:
        return None
    weights = [weight(b) for b in members]
    pick = ((transaction_id + generation) & _MASK64) % sum(weights)
    for backend, share in zip(members, weights, strict=True):
        if pick < share:
            return backend
        pick -= share
    return members[-1]


class PoolTable:
    """All pools of a snapshot by name, with the default pool (chapter 20 section 11.1)."""

    __slots__ = ("by_name", "default", "pools")

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = tuple(pools)
        self.by_name = {pool.name: pool for pool in pools}
        self.default: Pool | None = self.by_name.get("default") or (pools[0] if pools else None)

    def get(self, name: str) -> Pool | None:
        """Return the pool called `name`, or None."""
        return self.by_name.get(name)


def canonical_sources(addresses: Sequence[str], family: int) -> tuple[str, ...]:
    """Return validated source addresses in canonical text, so that comparing text is enough."""
    return tuple(parse_source_address(address, family) for address in addresses)


def compile_pools(pools: Sequence[PoolConfig]) -> PoolTable:
    """Compile the pools of a validated configuration."""
    return PoolTable(
        [
            Pool(
                pool.name,
                [compile_backend(pool.name, backend) for backend in pool.backends],
                sources_v4=canonical_sources(pool.sources_v4, socket.AF_INET),
                sources_v6=canonical_sources(pool.sources_v6, socket.AF_INET6),
                health_enabled=bool(pool.health and pool.health.enabled),
                min_eligible=pool.health.min_eligible if pool.health else 0,
                max_inflight=pool.max_inflight,
            )
            for pool in pools
        ]
    )


def first_attempt_weights(pool: Pool, health: HealthView) -> list[tuple[Backend, int]]:
    """Return the weight of each backend on a first attempt, 0 where it is not eligible."""
    up = [b for b in pool.backends if health.is_up(b)]
    if _fails_open(pool, len(up)):
        return [(b, b.weight) for b in pool.backends]
    weight = _latency_weight(health)
    return [(b, weight(b) if b in up else 0) for b in pool.backends]


def _fails_open(pool: Pool, eligible: int) -> bool:
    return len(pool.backends) <= 1 or eligible < max(1, pool.min_eligible)
