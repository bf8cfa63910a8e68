"""Admission of one received message: ids, structural parse, slot, transaction (chapter 20, 7).

One `Ingress` belongs to one ingress worker; what they share is in `IngressContext`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Final

from conduit.observe.counters import CounterRegistry
from conduit.observe.logging import get_log
from conduit.runtime.slots import SlotPool
from conduit.snapshot import SnapshotRef
from conduit.transaction import ReplyPath, Transaction
from conduit.wire import Query, RejectReason, parse_query

_log = get_log("conduit_core")

#: Longer UDP queries are rejected as `wire_error` (chapter 20 section 2.1).
MAX_UDP_QUERY: Final = 4096


class IngressContext:
    """What all ingress workers share: snapshot, slots, id counter, counters and the queue."""

    def __init__(
        self,
        snapshots: SnapshotRef,
        slots: SlotPool,
        counters: CounterRegistry,
        submit: Callable[[Transaction], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.snapshots = snapshots
        self.slots = slots
        self.counters = counters
        self.submit = submit
        self.clock = clock
        # one counter for transaction id and global query index: the same events advance both
        self.ids = itertools.count(1)


class Ingress:
    """One ingress worker's admission: parses, counts rejects, takes a slot, hands over."""

    __slots__ = ("_context", "_listener", "_recorder", "_worker_index")

    def __init__(self, context: IngressContext, listener: ReplyPath) -> None:
        self._context = context
        self._listener = listener
        self._recorder = context.counters.acquire()
        self._worker_index = 0

    def admit(self, message: bytes, client_address: str, client_context: object) -> bool:
        """Take one datagram or one complete TCP message; False when nothing will answer it.

        `client_address` is the text of the peer's IP address; `client_context` goes to the
        listener's `reply` unchanged.
        """
        context = self._context
        transaction_id = next(context.ids)
        self._worker_index += 1
        snapshot = context.snapshots.current
        query = parse_query(message)
        if not isinstance(query, Query):
            self.reject(query)
            return False
        if not context.slots.acquire():
            _log.debug("transaction slot pool is full", txn_id=transaction_id)
            return False
        context.submit(
            Transaction(
                transaction_id,
                self._worker_index,
                query,
                snapshot,
                self._listener,
                client_address,
                client_context,
                context.clock(),
            )
        )
        return True

    def reject(self, reason: RejectReason) -> None:
        """Count one discarded message."""
        if self._context.snapshots.current.metrics_enabled:
            self._recorder.parse_rejected[(reason.value,)] += 1

    def reject_oversized(self) -> None:
        """Count a datagram above `MAX_UDP_QUERY`; it uses up its ids like any other."""
        next(self._context.ids)
        self._worker_index += 1
        self.reject(RejectReason.WIRE_ERROR)

    def close(self) -> None:
        """Give the recorder back when the worker ends."""
        self._context.counters.release(self._recorder)


def client_text(address: str) -> str:
    """Return the client's address; an IPv4-mapped IPv6 one as IPv4 (chapter 20 section 22)."""
    if address.startswith("::ffff:") and "." in address:
        return address[7:]
    return address
