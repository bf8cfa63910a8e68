"""The phases of one query, in order, as one generator (chapter 20 section 6).

`run(txn, environment)` does everything that needs no waiting itself and yields an effect where the
outside world must act; a runtime performs it, stores the result in `txn.effect_result` and resumes.
When the generator ends, `txn.reply` holds the message for the client, or None when the query was
dropped. A query that never waits ends without yielding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Final

from conduit.lookup import profiles
from conduit.lookup.await_fill import AwaitFill
from conduit.lookup.cached import look_up, settle
from conduit.lookup.caches import CacheRegistry
from conduit.lookup.forward import ANSWERED, FAILED, ROUTE_FAILED, TIMED_OUT, forward
from conduit.observe.counters import BATCH, Recorder
from conduit.observe.events.event_filter import sampled
from conduit.observe.events.hub import EventHub
from conduit.observe.labels import ip_family, rcode_label
from conduit.observe.logging import get_log
from conduit.observe.tracing import Tracer
from conduit.policy.outcome import CONTINUE, DROP, RETRY
from conduit.transaction import (
    DURATION_EXHAUSTED,
    FORWARD,
    SERVFAIL,
    UNKNOWN_PROFILE,
    Transaction,
)
from conduit.upstream.exchange import Exchange
from conduit.upstream.outstanding import OutstandingTable
from conduit.upstream.pool import HealthView
from conduit.wire import ExtendedError, fit_to_size, synthesize_reply

_log = get_log("conduit_core")

#: Everything the pipeline may yield.
Effect = Exchange | AwaitFill

_NOTIMP: Final = 4
_TYPE_IXFR: Final = 251
_TYPE_AXFR: Final = 252


class Environment:
    """What lives outside the snapshot: health, outstanding forwards, caches, observers, clock."""

    __slots__ = ("caches", "clock", "events", "health", "outstanding", "tracer")

    def __init__(
        self,
        health: HealthView | None = None,
        clock: Callable[[], float] = time.monotonic,
        outstanding: OutstandingTable | None = None,
        caches: CacheRegistry | None = None,
        events: EventHub | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """`events` and `tracer` are None when the process exports or traces nothing."""
        self.health = health
        self.outstanding = outstanding
        self.caches = caches
        self.clock = clock
        self.events = events
        self.tracer = tracer


class PhaseTimer:
    """Times the top-level phases of one transaction; made only while durations are measured."""

    __slots__ = ("_clock", "_histogram", "_mark")

    def __init__(self, recorder: Recorder, clock: Callable[[], float]) -> None:
        self._histogram = recorder.phase_duration
        self._clock = clock
        self._mark = clock()

    def follow(self, recorder: Recorder | None) -> None:
        """Go on with the recorder of the thread that runs the transaction now."""
        if recorder is not None:
            self._histogram = recorder.phase_duration

    def ended(self, phase: tuple[str]) -> None:
        """The phase that began at the end of the one before has ended."""
        now = self._clock()
        histogram = self._histogram
        values = histogram.pending[phase]
        values.append(now - self._mark)
        if len(values) >= BATCH:
            histogram.fold(phase)
        self._mark = now


_PARSE: Final = ("parse",)
_REQUEST_RULES: Final = ("request_rules",)
_LOOKUP: Final = ("lookup",)
_RESPONSE_RULES: Final = ("response_rules",)
_NO_ANSWER: Final = ("no_answer",)
_SEND: Final = ("send",)


def run(txn: Transaction, environment: Environment) -> Generator[Effect, None, None]:
    """Take `txn` from Parse to Send; see the module text."""
    snapshot = txn.snapshot
    txn.environment = environment
    clock = environment.clock
    query = txn.query
    recorder = txn.recorder
    timer: PhaseTimer | None = None
    if recorder is not None:
        if snapshot.timing:
            timer = PhaseTimer(recorder, clock)
        listener = txn.listener
        recorder.queries[
            (
                listener.label,
                listener.protocol,
                query.qtype,
                query.qclass,
                ip_family(txn.client_address),
            )
        ] += 1
        if timer is not None:
            timer.ended(_PARSE)
    tracer = environment.tracer
    parsed = clock() if tracer is not None else 0.0
    request_rules = snapshot.request_rules
    decision = CONTINUE
    if request_rules is not None and not _expired(txn, clock):
        decision = request_rules(txn)
        if timer is not None:
            timer.ended(_REQUEST_RULES)
    if tracer is not None:
        txn.trace = tracer.begin(txn, clock, parsed, clock())
    events = environment.events
    plans = snapshot.event_plans
    if events is not None and plans:
        plans = txn.event_plans = sampled(plans, txn)
        if plans:
            events.query(plans, txn)
    if decision == DROP:
        _drop(txn, "request_rules")
        return
    if txn.listener.is_tcp and query.qtype in (_TYPE_AXFR, _TYPE_IXFR):
        # a transfer is many messages; relaying one of them would corrupt it
        txn.rcode = _NOTIMP
        txn.extended_error = ExtendedError.NOT_SUPPORTED
        _send(txn, timer, clock)
        return
    response_rules = snapshot.response_rules
    route_failures = 0
    while True:
        if _expired(txn, clock):
            break
        outcome = yield from _lookup(txn, environment)
        if timer is not None:
            timer.follow(txn.recorder)
            timer.ended(_LOOKUP)
        if txn.trace is not None:
            txn.trace.ended("lookup", txn)
        if outcome == FAILED or (
            outcome == ROUTE_FAILED and not snapshot.route_failure_runs_response_rules
        ):
            break
        if _expired(txn, clock):
            break
        if response_rules is None or txn.skip_response_rules:
            break
        decision = response_rules(txn)
        if timer is not None:
            timer.ended(_RESPONSE_RULES)
        if txn.trace is not None:
            txn.trace.ended("response_rules", txn)
        if decision == DROP:
            _drop(txn, "response_rules")
            return
        if decision != RETRY:
            break
        _count_retry(txn)
        # a retry is never answered from a cache, also one that follows a hit
        txn.cache_eligible = False
        if outcome == ROUTE_FAILED:
            # a failed Route counts no attempt, so its retries need a bound of their own
            route_failures += 1
            if route_failures >= snapshot.max_attempts:
                txn.discard_answer()
                break
        if events is not None and plans:
            events.retry(plans, txn)
        txn.discard_answer()
        if outcome == ROUTE_FAILED:
            # so that a stashed retry pool is honoured by the next Route
            txn.attempt_count = max(1, txn.attempt_count)
    if txn.answer is None and snapshot.no_answer_rules is not None:
        txn.answer_source = txn.cache_instance = None
        decision = snapshot.no_answer_rules(txn)
        if timer is not None:
            timer.ended(_NO_ANSWER)
        if decision == DROP:
            _drop(txn, "no_answer_rules")
            return
    _send(txn, timer, clock)


def _expired(txn: Transaction, clock: Callable[[], float]) -> bool:
    """The deadline check before a phase; sets what a transaction past its limit reports."""
    if clock() - txn.started <= txn.snapshot.max_duration:
        return False
    if txn.answer is None:
        txn.rcode = SERVFAIL
        txn.converge(DURATION_EXHAUSTED)
        if txn.extended_error is None:
            txn.extended_error = ExtendedError.NO_REACHABLE_AUTHORITY
    return True


def _lookup(txn: Transaction, environment: Environment) -> Generator[Effect, None, int]:
    txn.lookup_entered = True
    profile = txn.snapshot.lookup_profiles.get(txn.lookup_profile)
    if profile is None:
        _log.error("unknown lookup profile", txn_id=txn.id, profile=txn.lookup_profile)
        txn.rcode = SERVFAIL
        txn.converge(UNKNOWN_PROFILE)
        txn.extended_error = ExtendedError.OTHER
        return FAILED
    for provider in profile:
        if provider.kind == profiles.FORWARD:
            if txn.fills:
                outcome = yield from _forward_and_fill(txn, environment)
                return outcome
            started = environment.clock()
            outcome = yield from forward(txn, environment.health, environment.clock)
            _count_forward_lookup(txn, outcome == ANSWERED, environment.clock() - started)
            return outcome
        assert provider.cache is not None
        if (yield from look_up(txn, environment.caches, provider.cache, environment.clock)):
            return ANSWERED
    # a chain that ends without an answer: response rules see a transaction without one
    settle(txn, None, environment.clock)
    txn.rcode = SERVFAIL
    return TIMED_OUT


def _forward_and_fill(txn: Transaction, environment: Environment) -> Generator[Effect, None, int]:
    """Forward as the leader of a flight: however it ends, every follower is woken."""
    clock = environment.clock
    started = clock()
    try:
        outcome = yield from forward(txn, environment.health, clock)
        # the upstream's octets under the client's id, before response rules see them
        settle(txn, txn.answer if outcome == ANSWERED else None, clock)
    finally:
        settle(txn, None, clock)
    _count_forward_lookup(txn, outcome == ANSWERED, clock() - started)
    return outcome


def _count_forward_lookup(txn: Transaction, answered: bool, elapsed: float) -> None:
    recorder = txn.recorder
    if recorder is None:
        return
    profile = txn.lookup_profile
    recorder.lookup_outcomes[(profile, FORWARD, "answered" if answered else "miss")] += 1
    if txn.snapshot.timing:
        recorder.lookup_duration.observe((profile, FORWARD), elapsed)


def _count_retry(txn: Transaction) -> None:
    pool = txn.retry_pool if txn.retry_pool is not None else txn.selected_pool
    if txn.recorder is not None and pool is not None:
        txn.recorder.retries[(pool,)] += 1


def _drop(txn: Transaction, reason: str) -> None:
    txn.drop_reason = reason
    txn.reply = None
    recorder = txn.recorder
    if recorder is not None:
        listener = txn.listener
        recorder.queries_dropped[
            (listener.label, listener.protocol, reason, ip_family(txn.client_address))
        ] += 1
    if _log.debug_enabled:
        _log.debug("query dropped", txn_id=txn.id, dns_id=txn.query.id, qname=txn.query.qname_text)


def _observe_reply(txn: Transaction, reply: bytes) -> None:
    """Export the reply and end the trace, where the process does either."""
    environment = txn.environment
    plans = txn.event_plans
    if plans:
        environment.events.response(plans, txn, reply)
    trace = txn.trace
    if trace is not None:
        trace.ended("send", txn)
        environment.tracer.finish(txn, trace)


def _send(txn: Transaction, timer: PhaseTimer | None, clock: Callable[[], float]) -> None:
    """Choose the reply and fit it to the client (chapter 20 section 16)."""
    query = txn.query
    reply = txn.answer
    if reply is None:
        reply = synthesize_reply(
            query, SERVFAIL if txn.rcode is None else txn.rcode, txn.extended_error
        )
    listener = txn.listener
    if not listener.is_tcp:
        limit = query.udp_payload_size or 512
        if len(reply) > limit:
            before = len(reply)
            reply, txn.truncated_on_send = fit_to_size(reply, limit)
            if txn.truncated_on_send and _log.debug_enabled:
                _log.debug(
                    "reply truncated",
                    wire_len_before=before,
                    wire_len_after=len(reply),
                    client_udp_payload_size=limit,
                )
    txn.reply = reply
    _observe_reply(txn, reply)
    recorder = txn.recorder
    if recorder is not None:
        family = ip_family(txn.client_address)
        source = txn.answer_source or ""
        rcode = txn.rcode
        if txn.answer is not None and txn.convergence_reason == DURATION_EXHAUSTED:
            rcode = reply[3] & 0xF
        recorder.responses[
            (listener.label, listener.protocol, rcode_label(rcode), family, source)
        ] += 1
        if txn.truncated_on_send:
            recorder.responses_truncated[(listener.label, listener.protocol, family, source)] += 1
        if timer is not None:
            timer.ended(_SEND)
            recorder.response_duration.observe(
                (source, listener.label, listener.protocol), clock() - txn.started
            )
    if _log.debug_enabled:
        backend = txn.selected_backend
        _log.debug(
            "query complete",
            txn_id=txn.id,
            dns_id=query.id,
            qname=query.qname_text,
            rcode=rcode_label(txn.rcode),
            pool=txn.selected_pool,
            backend=backend.label if backend is not None else None,
            cache=txn.cache_instance,
            attempts=txn.attempt_count,
        )
