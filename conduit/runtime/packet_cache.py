"""Replies to whole packets: what one ingress worker has just answered from a cache.

A packet that is the same but for its id gets the same reply as long as the cache entry behind it
is in the store, its TTLs are those of the same second, and the snapshot is the same. Everything
else goes the whole way. Used only where no rule, ACL, event sink or trace looks at a query, so
that what a shortcut leaves out is nothing but work; the counters see every query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from conduit.lookup.caches import LiveCache
from conduit.observe.counters import Recorder
from conduit.observe.labels import ip_family, rcode_label
from conduit.snapshot import RuntimeSnapshot
from conduit.transaction import CACHE, Transaction

#: Most packets remembered; when full all are forgotten, which is cheaper than choosing.
CAPACITY: Final = 4096
_PARSE: Final = ("parse",)
_LOOKUP: Final = ("lookup",)
_SEND: Final = ("send",)


class _Remembered(NamedTuple):
    reply: bytes
    cache: LiveCache
    key: bytes
    entry: object
    #: store time from which on the reply would say other TTLs
    until: float
    qtype: int
    qclass: int
    rcode: str


class PacketCache:
    """The packets of one ingress worker; belongs to its thread."""

    __slots__ = ("_clock", "_label", "_packets", "_snapshot")

    def __init__(self, label: str, clock: Callable[[], float]) -> None:
        """`label` is the listener's; `clock` is the transactions'."""
        self._label = label
        self._clock = clock
        self._snapshot: RuntimeSnapshot | None = None
        self._packets: dict[bytes, _Remembered] = {}

    def find(
        self, message: bytes, snapshot: RuntimeSnapshot, client: str, recorder: Recorder
    ) -> bytes | None:
        """Return the reply to a datagram, counted like any other query, or None."""
        if self._snapshot is not snapshot:
            self._packets.clear()
            self._snapshot = snapshot
            return None
        known = self._packets.get(message[2:])
        if known is None:
            return None
        cache = known.cache
        started = self._clock()
        now = cache.now(started)
        if now >= known.until or cache.store.get(known.key, now) is not known.entry:
            del self._packets[message[2:]]
            return None
        if snapshot.metrics_enabled:
            self._count(known, client, recorder, started, snapshot.timing)
        return message[:2] + known.reply

    def _count(
        self, known: _Remembered, client: str, recorder: Recorder, started: float, timing: bool
    ) -> None:
        label, family, name = self._label, ip_family(client), known.cache.name
        recorder.queries[(label, "udp", known.qtype, known.qclass, family)] += 1
        recorder.cache_lookups[(name, "default", "hit")] += 1
        recorder.lookup_outcomes[("default", CACHE, "answered")] += 1
        recorder.responses[(label, "udp", known.rcode, family, CACHE)] += 1
        if timing:
            # parse and look-up are one step here, and sending is the caller's
            elapsed = self._clock() - started
            observe = recorder.phase_duration.observe
            observe(_PARSE, 0.0)
            observe(_LOOKUP, elapsed)
            observe(_SEND, 0.0)
            recorder.cache_lookup_duration.observe((name, "default"), elapsed)
            recorder.lookup_duration.observe(("default", CACHE), elapsed)
            recorder.response_duration.observe((CACHE, label, "udp"), elapsed)

    def remember(self, message: bytes, txn: Transaction) -> None:
        """Note the reply to `message` when a cache gave it and it stands for the next one too."""
        hit, reply = txn.cache_hit, txn.reply
        if hit is None or reply is None or txn.truncated_on_send:
            return
        cache, key, entry = hit
        first = txn.snapshot.lookup_profiles["default"][0]
        if (
            cache.policy.rotate
            or txn.snapshot is not self._snapshot
            # a cache that missed before this one hit is counted, too
            or first.cache != cache.name
            # the entry of another name, or of a truncated answer
            or cache.store.get(key, now := cache.now(self._clock())) is not entry
        ):
            return
        if len(self._packets) >= CAPACITY:
            self._packets.clear()
        self._packets[message[2:]] = _Remembered(
            reply[2:],
            cache,
            key,
            entry,
            min(entry.expires, entry.stored + int(now - entry.stored) + 1),
            txn.query.qtype,
            txn.query.qclass,
            rcode_label(txn.rcode),
        )
