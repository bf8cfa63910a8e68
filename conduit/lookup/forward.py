"""The forward provider: limits, Route, Forward and Wait of one attempt (chapter 20 sections 10-13).

A generator: it yields one `Exchange` when it forwards and reads the result from
`txn.effect_result` when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from conduit.observe.logging import get_log
from conduit.transaction import (
    ATTEMPTS_EXHAUSTED,
    FORWARD,
    FORWARD_ERROR,
    NO_BACKEND_SELECTED,
    NO_POOL,
    SERVFAIL,
    Transaction,
)
from conduit.upstream.exchange import (
    SPEAKS_OF_BACKEND,
    TCP,
    TIMEOUT,
    UDP,
    UDP_WITH_TCP_FALLBACK,
    WITHOUT_BACKEND,
    Exchange,
    ExchangeResult,
)
from conduit.upstream.pool import HealthView, Pool
from conduit.wire import ExtendedError, message_decodes

_log = get_log("conduit_core")

#: Outcomes of a lookup, told apart by identity.
ANSWERED: Final = 0
TIMED_OUT: Final = 1
ROUTE_FAILED: Final = 2
FAILED: Final = 3


def resolve_pool(txn: Transaction) -> Pool | None:
    """Return the pool of the next attempt (chapter 20 section 11.1).

    Consumes a retry pool on attempts after the first, even if Route then fails.
    """
    name = txn.selected_pool
    if txn.attempt_count > 0 and txn.retry_pool is not None:
        name, txn.retry_pool = txn.retry_pool, None
    pools = txn.snapshot.pools
    if name is None:
        pool = pools.default
        if pool is None:
            _fail_route(txn, NO_POOL, "route failed: no pool resolvable", None)
        return pool
    pool = pools.get(name)
    if pool is None:
        # no fall-back to the default pool for an unknown name
        _fail_route(txn, NO_BACKEND_SELECTED, "route failed: no backend selectable", name)
    return pool


def _fail_route(txn: Transaction, reason: str, message: str, pool: str | None) -> None:
    txn.rcode = SERVFAIL
    txn.converge(reason)
    txn.extended_error = ExtendedError.NO_REACHABLE_AUTHORITY
    _log.warn(message, txn_id=txn.id, pool=pool)


def choose_transport(upstream_transport: str, client_is_tcp: bool, follow_client: bool) -> str:
    """Return the transport of an attempt (chapter 20 section 12.1).

    `follow_client` is `client_tcp_uses_upstream_tcp`; it does nothing under `udp_only`.
    """
    if upstream_transport == "tcp_only":
        return TCP
    if upstream_transport == "prefer_udp_with_tcp_fallback":
        return TCP if client_is_tcp and follow_client else UDP_WITH_TCP_FALLBACK
    return UDP


def forward(
    txn: Transaction, health: HealthView | None, clock: Callable[[], float]
) -> Generator[Exchange, None, int]:
    """Run one attempt; returns ANSWERED, TIMED_OUT, ROUTE_FAILED or FAILED."""
    snapshot = txn.snapshot
    # entering the forward provider ends cache use for the rest of the transaction
    txn.cache_eligible = False
    if txn.attempt_count >= snapshot.max_attempts:
        txn.rcode = SERVFAIL
        txn.converge(ATTEMPTS_EXHAUSTED)
        txn.extended_error = ExtendedError.NO_REACHABLE_AUTHORITY
        _log.warn("forward attempts exhausted", txn_id=txn.id, attempts=txn.attempt_count)
        return FAILED
    pool = resolve_pool(txn)
    if pool is None:
        return ROUTE_FAILED
    attempt_count = txn.attempt_count
    backend = pool.select(
        txn.id,
        snapshot.selection_generation,
        attempt_count,
        txn.tried_in(pool.name) if attempt_count else (),
        health,
    )
    if backend is None:
        _fail_route(txn, NO_BACKEND_SELECTED, "route failed: no backend selectable", pool.name)
        return ROUTE_FAILED
    txn.record_attempt(pool.name, backend)
    recorder = txn.recorder
    if recorder is not None:
        recorder.queries_by_pool[(pool.name,)] += 1
    query = txn.query
    trace = txn.trace
    if trace is not None:
        trace.ended("route", txn)
    started = clock()
    if trace is not None:
        trace.ended_at("forward", started, txn)
    yield Exchange(
        pool,
        backend,
        query.wire,
        query.question,
        choose_transport(
            snapshot.upstream_transport, txn.listener.is_tcp, snapshot.client_tcp_uses_upstream_tcp
        ),
        txn.take_source_override(backend.is_ipv6),
        started + snapshot.forward_timeout,
        snapshot.forward_timeout,
        snapshot.outstanding_per_backend,
    )
    result = txn.effect_result
    # another thread may run the transaction from here on
    recorder = txn.recorder
    assert isinstance(result, ExchangeResult)
    elapsed = clock() - started
    txn.last_rtt_ms = int(elapsed * 1000)
    if trace is not None:
        trace.ended("wait_response", txn)
    if recorder is not None and snapshot.timing:
        recorder.forward_duration.observe((pool.name, backend.label), elapsed)
    reply = result.reply
    if reply is not None:
        if recorder is not None:
            recorder.forward_attempts[(pool.name, backend.label, "success")] += 1
        if health is not None and pool.health_enabled:
            health.forward_succeeded(backend)
        txn.answer = reply
        txn.answer_source = FORWARD
        # who would look at the rcode: rules, counters, the debug log
        wanted = recorder is not None or snapshot.response_rules is not None
        if (wanted or _log.debug_enabled) and message_decodes(reply, query.question):
            txn.rcode = reply[3] & 0xF
        return ANSWERED
    error = result.error or TIMEOUT
    if recorder is not None:
        label = "unknown" if error in WITHOUT_BACKEND else backend.label
        recorder.forward_attempts[(pool.name, label, "error")] += 1
        recorder.forward_errors[(pool.name, label, error)] += 1
    if health is not None and pool.health_enabled and error in SPEAKS_OF_BACKEND:
        health.forward_failed(backend, error, query, txn.client_address)
    txn.rcode = SERVFAIL
    txn.converge(FORWARD_ERROR)
    if error == TIMEOUT:
        txn.extended_error = ExtendedError.NO_REACHABLE_AUTHORITY
        return TIMED_OUT
    txn.extended_error = ExtendedError.NETWORK_ERROR
    return FAILED
