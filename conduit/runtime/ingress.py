"""Admission of one received message: client ACL, parse, slot, transaction (chapter 20, 7).

One `Ingress` belongs to one ingress worker; what they share is in `IngressContext`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from enum import Enum
from typing import Final

from conduit.config import Listener
from conduit.observe.counters import CounterRegistry
from conduit.observe.labels import ip_family
from conduit.observe.logging import get_log
from conduit.policy.acl import DROP, LISTENER, PREADMISSION, REFUSE, AclPolicy
from conduit.runtime.packet_cache import PacketCache
from conduit.runtime.slots import SlotPool
from conduit.snapshot import RuntimeSnapshot, SnapshotRef
from conduit.transaction import ReplyPath, Transaction
from conduit.wire import ExtendedError, Query, RejectReason, parse_query, synthesize_reply

_log = get_log("conduit_core")

#: Longer UDP queries are rejected as `wire_error` (chapter 20 section 2.1).
MAX_UDP_QUERY: Final = 4096
_REFUSED: Final = 5


class IngressContext:
    """What all ingress workers share: snapshot, slots, id counter, counters and the queue."""

    def __init__(
        self,
        snapshots: SnapshotRef,
        slots: SlotPool,
        counters: CounterRegistry,
        submit: Callable[[Transaction], None],
        clock: Callable[[], float] = time.monotonic,
        remember_packets: bool = False,
    ) -> None:
        """`remember_packets` allows the shortcut for packets that a cache has just answered."""
        self.snapshots = snapshots
        self.slots = slots
        self.counters = counters
        self.submit = submit
        self.clock = clock
        self.remember_packets = remember_packets
        # one counter for transaction id and global query index: the same events advance both
        self.ids = itertools.count(1)


class Admission(Enum):
    """What became of one message."""

    #: A transaction has been queued and will be answered or dropped.
    QUEUED = 1
    #: The reply has been sent already: refused by the client ACL.
    ANSWERED = 2
    #: Nothing will answer it.
    DISCARDED = 3


class Ingress:
    """One ingress worker's admission: client ACL, parse, slot, hand-over."""

    __slots__ = (
        "_context",
        "_denied",
        "_entry",
        "_listener",
        "_packets",
        "_recorder",
        "_worker_index",
    )

    def __init__(self, context: IngressContext, listener: ReplyPath, entry: Listener) -> None:
        """`entry` is the configured listener, by which the ACL of the day is found."""
        self._context = context
        self._listener = listener
        self._entry = entry
        self._recorder = context.counters.acquire()
        self._worker_index = 0
        self._denied = 0
        self._packets: PacketCache | None = None
        if context.remember_packets and not listener.is_tcp:
            self._packets = PacketCache(listener.label, context.clock)

    def admit(
        self, message: bytes, client_address: str, client_port: int, client_context: object
    ) -> Admission:
        """Take one datagram or one complete TCP message.

        `client_address` is the text of the peer's IP address; `client_context` goes to the
        listener's `reply` unchanged.
        """
        context = self._context
        transaction_id = next(context.ids)
        self._worker_index += 1
        snapshot = context.snapshots.current
        acl = snapshot.policy.acl_of(self._entry) if snapshot.has_acls else None
        if (
            acl is not None
            # a TCP client has passed tier 0 when it connected
            and not self._listener.is_tcp
            and self._drops_before_parse(snapshot, acl, client_address)
        ):
            return Admission.DISCARDED
        packets = self._packets if snapshot.answers_packets and not _log.debug_enabled else None
        if packets is not None:
            reply = packets.find(message, snapshot, client_address, self._recorder)
            if reply is not None:
                self._listener.reply(client_context, reply)
                return Admission.ANSWERED
        query = parse_query(message)
        if not isinstance(query, Query):
            self.reject(query)
            return Admission.DISCARDED
        tag: str | None = None
        if acl is not None:
            decision = acl.decide(client_address)
            self._count_decision(snapshot, LISTENER, decision.decision, client_address)
            if decision.decision in (DROP, REFUSE):
                self._deny(snapshot, client_address, decision.view, decision.decision, LISTENER)
                if decision.decision == DROP:
                    return Admission.DISCARDED
                self._listener.reply(
                    client_context, synthesize_reply(query, _REFUSED, ExtendedError.BLOCKED)
                )
                return Admission.ANSWERED
            tag = decision.tag
        if not context.slots.acquire():
            _log.debug("transaction slot pool is full", txn_id=transaction_id)
            return Admission.DISCARDED
        txn = Transaction(
            transaction_id,
            self._worker_index,
            query,
            snapshot,
            self._listener,
            client_address,
            client_context,
            context.clock(),
            client_port,
        )
        if tag is not None:
            txn.set_flag(tag)
        context.submit(txn)
        if packets is not None and txn.cache_hit is not None:
            packets.remember(message, txn)
        return Admission.QUEUED

    def admits_connection(self, client_address: str) -> bool:
        """Tier 0 for a TCP client that has just connected; False means close it."""
        snapshot = self._context.snapshots.current
        acl = snapshot.policy.acl_of(self._entry) if snapshot.has_acls else None
        return acl is None or not self._drops_before_parse(snapshot, acl, client_address)

    def _drops_before_parse(
        self, snapshot: RuntimeSnapshot, acl: AclPolicy, client_address: str
    ) -> bool:
        view = acl.drops_before_parse(client_address)
        if view is None:
            return False
        self._count_decision(snapshot, PREADMISSION, DROP, client_address)
        self._deny(snapshot, client_address, view, DROP, PREADMISSION)
        return True

    def _count_decision(
        self, snapshot: RuntimeSnapshot, tier: str, action: str, client_address: str
    ) -> None:
        if snapshot.metrics_enabled:
            key = (tier, action, self._listener.label, ip_family(client_address))
            self._recorder.acl_decisions[key] += 1

    def _deny(
        self, snapshot: RuntimeSnapshot, client_address: str, view: str, action: str, stage: str
    ) -> None:
        self._denied += 1
        denials = snapshot.policy.denials
        if denials.enabled:
            denials.denied(self._denied, client_address, self._listener.label, view, action, stage)

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
