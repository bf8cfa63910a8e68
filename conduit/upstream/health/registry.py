"""All backend health of the process: what Route reads, and everything that changes it.

Readers on the query path take no lock: they read one attribute of one entry. Changes are serialised
by one lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from conduit.observe.logging import get_log
from conduit.upstream.backend import Backend
from conduit.upstream.health.scopes import (
    ControlAction,
    Scope,
    ScopeError,
    ScopeLevel,
    ScopeSettings,
)
from conduit.upstream.health.settings import HealthTarget
from conduit.upstream.health.state import BackendHealth, Liveness
from conduit.wire import Query

_log = get_log("conduit_core")

Key = tuple[str, str]


class HealthRegistry:
    """Health of every backend of every pool with health enabled, by pool and address."""

    def __init__(self, wall_clock: Callable[[], float] = time.time) -> None:
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._scopes = ScopeSettings()
        # replaced as a whole by a reconcile, so that readers need no lock
        self._entries: dict[Key, BackendHealth] = {}
        self._weighted: dict[str, list[BackendHealth]] = {}

    # what Route reads

    def is_up(self, backend: Backend) -> bool:
        """True when the applied state is up, or when the backend has no record."""
        entry = self._entries.get((backend.pool, backend.key))
        return entry is None or entry.applied is Liveness.UP

    def weight_factor(self, backend: Backend) -> float | None:
        """The latency factor, or None when latency weighting does not apply."""
        entry = self._entries.get((backend.pool, backend.key))
        if entry is None or not entry.settings.latency_weighting:
            return None
        return entry.factor

    # live traffic

    def forward_succeeded(self, backend: Backend) -> None:
        """An upstream answered, whatever its rcode."""
        entry = self._entries.get((backend.pool, backend.key))
        if entry is not None and entry.passive_run:
            with self._lock:
                entry.forward_succeeded()

    def forward_failed(self, backend: Backend, reason: str, query: Query, client: str) -> None:
        """A forward ended in `timeout`, `send_error` or `tcp_error` (chapter 60 section 12.1)."""
        entry = self._entries.get((backend.pool, backend.key))
        if entry is None or not entry.settings.passive_fall:
            return
        with self._lock:
            was_down = entry.observed is Liveness.DOWN
            entry.forward_failed(self._wall_clock())
            is_down = entry.observed is Liveness.DOWN
            run = entry.passive_run
        if was_down:
            if _log.debug_enabled:
                _log.debug(
                    "passive health: forward failure (backend already down)",
                    **_failure_fields(backend, reason, query, client),
                )
            return
        message = (
            "passive fast-trip: backend marked down"
            if is_down
            else "passive health: forward failure"
        )
        _log.warn(
            message,
            **_failure_fields(backend, reason, query, client),
            passive_failures=run,
            passive_fall=entry.settings.passive_fall,
        )

    # probes

    def probe_succeeded(self, entry: BackendHealth, rtt_ms: float) -> None:
        """A probe got an acceptable reply after `rtt_ms` milliseconds."""
        with self._lock:
            changed = entry.probe_succeeded(rtt_ms, self._wall_clock())
        if changed:
            _log_transition(entry)

    def probe_failed(self, entry: BackendHealth) -> None:
        """A probe failed or found no reply in time."""
        with self._lock:
            changed = entry.probe_failed(self._wall_clock())
        if changed:
            _log_transition(entry)

    def recompute_factors(self) -> None:
        """Move the weight factors of every pool with latency weighting one step."""
        if not self._weighted:
            return
        with self._lock:
            for entries in self._weighted.values():
                samples = [
                    e.ewma_ms for e in entries if e.applied is Liveness.UP and e.ewma_ms is not None
                ]
                fastest = min(samples, default=None)
                for entry in entries:
                    entry.damp_factor(fastest)

    # configuration

    def reconcile(self, targets: Sequence[HealthTarget]) -> None:
        """Follow a new configuration: keep what has the same identity, drop what is gone.

        A backend whose probe asks something else, or asks it another way, starts afresh.
        """
        with self._lock:
            entries: dict[Key, BackendHealth] = {}
            for target in targets:
                key = target.key
                if key in entries:
                    continue
                known = self._entries.get(key)
                if known is not None and known.settings.probe == target.settings.probe:
                    known.backend = target.backend
                    known.settings = target.settings
                    entries[key] = known
                else:
                    entries[key] = BackendHealth(target, self._scopes.frozen(key))
            weighted: dict[str, list[BackendHealth]] = {}
            for entry in entries.values():
                if entry.settings.latency_weighting:
                    weighted.setdefault(entry.backend.pool, []).append(entry)
            self._weighted = weighted
            self._entries = entries

    # operators

    def control(self, action: ControlAction, scope: Scope) -> list[BackendHealth]:
        """Carry out an operator control; returns the affected backends, in configuration order.

        Raises ScopeError when the scope names nothing (chapter 60 section 7.2).
        """
        with self._lock:
            affected, key = self._select(scope)
            self._scopes.set(
                scope.level, scope.pool, key, action is not ControlAction.RESUME_AUTOMATIC
            )
            for entry_key, entry in self._entries.items():
                entry.frozen = self._scopes.frozen(entry_key)
            now = self._wall_clock()
            for entry in affected:
                if action is ControlAction.SET_UP:
                    entry.set_applied(Liveness.UP, now)
                elif action is ControlAction.SET_DOWN:
                    entry.set_applied(Liveness.DOWN, now)
                elif action is ControlAction.RESUME_AUTOMATIC and not entry.frozen:
                    entry.set_applied(entry.observed, now)
            return affected

    def entries(self) -> list[BackendHealth]:
        """Every entry, in configuration order."""
        return list(self._entries.values())

    def find(self, pool: str, backend: str) -> BackendHealth | None:
        """Return the entry of a backend by name, else by address, in one pool."""
        members = [e for e in self._entries.values() if e.backend.pool == pool]
        for entry in members:
            if entry.backend.label == backend:
                return entry
        return next((e for e in members if e.backend.key == backend), None)

    def get(self, backend: Backend) -> BackendHealth | None:
        """Return the entry of a compiled backend, or None."""
        return self._entries.get((backend.pool, backend.key))

    def _select(self, scope: Scope) -> tuple[list[BackendHealth], Key | None]:
        entries = list(self._entries.values())
        if not entries:
            raise ScopeError("health checking not configured")
        if scope.level is ScopeLevel.GLOBAL:
            return entries, None
        if not scope.pool:
            raise ScopeError(f"{scope.level.value} scope requires pool")
        if scope.level is ScopeLevel.BACKEND and not scope.backend:
            raise ScopeError("backend scope requires backend")
        members = [e for e in entries if e.backend.pool == scope.pool]
        if not members:
            raise ScopeError(f'unknown pool "{scope.pool}"')
        if scope.level is ScopeLevel.POOL:
            return members, None
        assert scope.backend is not None
        entry = self.find(scope.pool, scope.backend)
        if entry is None:
            raise ScopeError(f'unknown backend "{scope.backend}" in pool "{scope.pool}"')
        return [entry], (entry.backend.pool, entry.backend.key)


def _failure_fields(backend: Backend, reason: str, query: Query, client: str) -> dict[str, object]:
    return {
        "pool": backend.pool,
        "backend": backend.key,
        "reason": reason,
        "qname": query.qname_text,
        "qtype": query.qtype,
        "client": client,
    }


def _log_transition(entry: BackendHealth) -> None:
    _log.info(
        "backend health transition",
        pool=entry.backend.pool,
        backend=entry.backend.key,
        observed=entry.observed.text,
        applied=entry.applied.text,
    )


def active_by_pool(entries: Iterable[BackendHealth]) -> dict[str, int]:
    """Return the number of backends with `applied` up, for every pool with health enabled."""
    counts: dict[str, int] = {}
    for entry in entries:
        pool = entry.backend.pool
        counts[pool] = counts.get(pool, 0) + (entry.applied is Liveness.UP)
    return counts
