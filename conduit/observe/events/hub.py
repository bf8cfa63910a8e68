"""The event hub: what the query path calls, and the sinks that run (chapter 50 sections 5.4, 5.9).

Plans come from a transaction's snapshot and change with each apply; sinks run from start to stop.
A plan meets its sink by name. No call from the query path waits or raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from conduit.config import Events
from conduit.observe.events.collector import open_connection, parse_destination
from conduit.observe.events.dnstap import QUERY, RESPONSE, RETRY, ClientMessage
from conduit.observe.events.event_filter import SinkPlan
from conduit.observe.events.event_queue import EventQueue
from conduit.observe.events.sink import Connect, RunningSink, SinkCounters
from conduit.observe.logging import get_log

if TYPE_CHECKING:
    from conduit.transaction import Transaction

_log = get_log("conduit_events")

#: All consumers together get so many seconds to end.
STOP_LIMIT: Final = 0.25
#: Shortest time between two lines about a fault in this code, seconds.
_FAULT_INTERVAL: Final = 60.0


class EventHub:
    """The running sinks of the process."""

    def __init__(
        self,
        events: Events,
        base_dir: str,
        wall_clock: Callable[[], int] = time.time_ns,
        connect: Connect = open_connection,
    ) -> None:
        """Build the sinks of a validated block; relative socket paths are taken from `base_dir`.

        `wall_clock` gives nanoseconds since 1970, `connect` opens one collector connection.
        """
        self.events = events
        self._now = wall_clock
        self._sinks: dict[str, RunningSink] = {}
        self._silent_until = 0.0
        for sink in events.sinks:
            parsed = [parse_destination(text, base_dir) for text in sink.destinations]
            destinations = [destination for destination in parsed if destination is not None]
            name = sink.canonical_name
            if not destinations:
                _log.warn("dnstap sink without a usable destination is not started", sink=name)
                continue
            queue = EventQueue(events.queue_depth, events.drop_policy)
            self._sinks[name] = RunningSink(
                name, sink.identity, destinations, queue, sink.connect_retry, connect
            )

    def start(self) -> None:
        """Start one consumer thread a sink; call it once, after any fork."""
        for sink in self._sinks.values():
            sink.start()

    def stop(self, limit: float = STOP_LIMIT) -> bool:
        """Stop all consumers within `limit` seconds; queued events are discarded.

        Returns False when a consumer is still running then; its thread ends with the process.
        """
        for sink in self._sinks.values():
            sink.request_stop()
        deadline = time.monotonic() + limit
        ended = [sink.join(max(0.0, deadline - time.monotonic())) for sink in self._sinks.values()]
        return all(ended)

    # the query path

    def query(self, plans: tuple[SinkPlan, ...], txn: Transaction) -> None:
        """Report the query of `txn`: Request rules have finished, also when they dropped it."""
        try:
            message: ClientMessage | None = None
            for plan in plans:
                if plan.wants_query(txn):
                    sink = self._sinks.get(plan.name)
                    if sink is None:
                        continue
                    if message is None:
                        message = self._message(QUERY, txn, txn.query.wire)
                    sink.offer(message, plan.extra(txn))
        except Exception:
            self._fault()

    def response(self, plans: tuple[SinkPlan, ...], txn: Transaction, wire: bytes) -> None:
        """Report the reply `wire`, as sent to the client; an empty one is not reported."""
        if not wire:
            return
        try:
            message: ClientMessage | None = None
            for plan in plans:
                if plan.wants_response(txn):
                    sink = self._sinks.get(plan.name)
                    if sink is None:
                        continue
                    if message is None:
                        message = self._message(RESPONSE, txn, wire)
                    sink.offer(message, plan.extra(txn))
        except Exception:
            self._fault()

    def retry(self, plans: tuple[SinkPlan, ...], txn: Transaction) -> None:
        """Report an additional attempt: Response rules hand back to Lookup.

        Call it before the stored answer is discarded and before `retry_pool` is used up. This is
        the documented moment; reporting once after the response would be a call elsewhere.
        """
        try:
            message: ClientMessage | None = None
            for plan in plans:
                if plan.wants_retry(txn):
                    sink = self._sinks.get(plan.name)
                    if sink is None:
                        continue
                    if message is None:
                        message = self._message(RETRY, txn, txn.query.wire)
                    sink.offer(message, plan.retry_extra(txn))
        except Exception:
            self._fault()

    def _message(self, kind: int, txn: Transaction, wire: bytes) -> ClientMessage:
        return ClientMessage(
            kind, self._now(), txn.client_address, txn.client_port, txn.listener.is_tcp, wire
        )

    def _fault(self) -> None:
        now = time.monotonic()
        if now >= self._silent_until:
            self._silent_until = now + _FAULT_INTERVAL
            _log.exception("event export failed")

    # the metrics page

    def counters(self) -> Mapping[str, SinkCounters]:
        """Return the counters of each configured sink, by name, in the order of the file."""
        found: dict[str, SinkCounters] = {}
        for sink in self.events.sinks:
            running = self._sinks.get(sink.canonical_name)
            found[sink.canonical_name] = SinkCounters() if running is None else running.counters()
        return found


def pending_changes(old: Events, new: Events) -> bool:
    """True when `new` differs from `old` in what takes a restart (chapter 50 section 5.9).

    Filters, `emit`, `extra_fields` and `extra_tags` of a sink, and the order of sinks, do not.
    """
    return _restart_part(old) != _restart_part(new)


def _restart_part(events: Events) -> object:
    return (
        events.queue_depth,
        events.drop_policy,
        {
            sink.canonical_name: (
                sink.type,
                sink.destinations,
                sink.identity,
                sink.connect_retry.resolved(),
            )
            for sink in events.sinks
        },
    )
