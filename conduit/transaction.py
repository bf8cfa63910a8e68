"""One client query from Receive to Send: its fields and the methods that policy may use on it.

The life cycles of `selected_pool`, `retry_pool` and the source overrides are those of chapter 20
sections 11 and 12.6; rules and scripts set them through the methods here and nowhere else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from conduit.observe.counters import Recorder
from conduit.wire import Query

if TYPE_CHECKING:
    from conduit.observe.tracing import Trace
    from conduit.snapshot import RuntimeSnapshot
    from conduit.upstream.backend import Backend

SERVFAIL = 2

# Where a stored answer came from, as the label `answer_source`.
FORWARD = "forward"
CACHE = "cache"

# Convergence reasons (chapter 20 section 6); the first one set wins.
NO_POOL = "no_pool"
NO_BACKEND_SELECTED = "no_backend_selected"
ATTEMPTS_EXHAUSTED = "attempts_exhausted"
DURATION_EXHAUSTED = "duration_exhausted"
UNKNOWN_PROFILE = "unknown_profile"
FORWARD_ERROR = "forward_error"
STALE_MISS = "stale_miss"


class ReplyPath(Protocol):
    """What a transaction knows of the listener it came from."""

    label: str
    protocol: str
    is_tcp: bool

    def reply(self, client_context: Any, wire: bytes) -> None:
        """Send `wire` to the client; send errors are ignored."""
        ...

    def no_reply(self, client_context: Any) -> None:
        """A query ends without a reply (TCP closes the connection)."""
        ...


class Attempt:
    """One recorded forward attempt: pool, backend and the attempt number, from 1."""

    __slots__ = ("backend", "number", "pool")

    def __init__(self, pool: str, backend: Backend, number: int) -> None:
        self.pool = pool
        self.backend = backend
        self.number = number


class Transaction:
    """The state of one client query; all times are seconds of the monotonic clock.

    `id` is unique in the process and never reused; it is also the global query index, because the
    same events advance both. `worker_index` counts the queries of one ingress worker, from 1.
    """

    __slots__ = (
        "_profile",
        "_received",
        "answer",
        "answer_source",
        "attempt_count",
        "attempts",
        "cache_eligible",
        "cache_hit",
        "cache_instance",
        "client_address",
        "client_context",
        "client_port",
        "convergence_reason",
        "drop_reason",
        "effect_result",
        "environment",
        "event_plans",
        "extended_error",
        "fills",
        "flags",
        "hook_scratch",
        "id",
        "last_rtt_ms",
        "listener",
        "lookup_entered",
        "query",
        "rcode",
        "recorder",
        "reply",
        "retry_pool",
        "retry_source_v4",
        "retry_source_v6",
        "selected_backend",
        "selected_pool",
        "skip_response_rules",
        "snapshot",
        "soft_drop",
        "soft_retry",
        "source_v4",
        "source_v6",
        "started",
        "strings",
        "trace",
        "truncated_on_send",
        "worker_index",
    )

    def __init__(
        self,
        transaction_id: int,
        worker_index: int,
        query: Query,
        snapshot: RuntimeSnapshot,
        listener: ReplyPath,
        client_address: str,
        client_context: Any,
        started: float,
        client_port: int = 0,
    ) -> None:
        self.id = transaction_id
        self.worker_index = worker_index
        self.query = query
        self.snapshot = snapshot
        self.listener = listener
        #: Text of the client's IP address; an IPv4-mapped peer is given as IPv4.
        self.client_address = client_address
        self.client_port = client_port
        #: What the listener needs to answer: a socket address or a connection.
        self.client_context: Any = client_context
        self.started = started
        self._received: float | None = None
        #: What lives outside the snapshot; set by the pipeline when it begins.
        self.environment: Any = None
        #: What scripts of one hook share; the rule pass clears it.
        self.hook_scratch: Any = None
        #: The event sinks that take frames of this transaction.
        self.event_plans: tuple[Any, ...] = ()
        #: The phases noted so far, of a transaction that is traced.
        self.trace: Trace | None = None
        #: Counters of the thread that runs the transaction; None while metrics are off.
        self.recorder: Recorder | None = None
        # policy
        self.flags: dict[str, bool] | None = None
        self.strings: dict[str, str] | None = None
        self.soft_drop = False
        self.soft_retry = False
        self.selected_pool: str | None = None
        self.retry_pool: str | None = None
        self.source_v4: str | None = None
        self.source_v6: str | None = None
        self.retry_source_v4: str | None = None
        self.retry_source_v6: str | None = None
        self._profile: str | None = None
        self.lookup_entered = False
        self.cache_eligible = True
        # routing
        self.selected_backend: Backend | None = None
        self.attempts: list[Attempt] | None = None
        self.attempt_count = 0
        # answer
        self.answer: bytes | None = None
        self.answer_source: str | None = None
        self.cache_instance: str | None = None
        self.rcode: int | None = None
        self.last_rtt_ms = 0
        self.truncated_on_send = False
        #: Caches that wait for this transaction's answer, and their flights.
        self.fills: tuple[Any, ...] = ()
        #: Cache, key and entry of a hit, while the answer stands.
        self.cache_hit: tuple[Any, bytes, Any] | None = None
        #: The cache that answered wants no response rules on a hit.
        self.skip_response_rules = False
        # failure
        self.convergence_reason: str | None = None
        #: Extended DNS Error (RFC 8914) of a synthesized reply, or None.
        self.extended_error: int | None = None
        self.drop_reason: str | None = None
        # the driver's side: result of the effect just performed, and the reply to deliver
        self.effect_result: object = None
        self.reply: bytes | None = None

    @property
    def received(self) -> float:
        """Wall-clock seconds when the query was received; the same at each reading."""
        if self._received is None:
            self._received = time.time() - (time.monotonic() - self.started)
        return self._received

    # tags (chapter 30 section 8)

    def set_flag(self, key: str, value: bool = True) -> None:
        """Set the boolean tag `key`."""
        if self.flags is None:
            self.flags = {}
        self.flags[key] = value

    def set_string(self, key: str, value: str) -> None:
        """Set the string tag `key`."""
        if self.strings is None:
            self.strings = {}
        self.strings[key] = value

    def clear_tag(self, key: str) -> None:
        """Remove `key` from both kinds of tag; a missing key is no error."""
        if self.flags is not None:
            self.flags.pop(key, None)
        if self.strings is not None:
            self.strings.pop(key, None)

    def has_tag(self, key: str) -> bool:
        """True when the boolean tag is true or a string tag is present."""
        return (self.flags is not None and self.flags.get(key) is True) or (
            self.strings is not None and key in self.strings
        )

    # lookup profile

    @property
    def lookup_profile(self) -> str:
        """Name of the lookup profile in use; `default` when nothing chose one."""
        return self._profile or "default"

    def set_lookup_profile(self, name: str) -> None:
        """Choose the lookup profile; an unknown one ends in SERVFAIL at Lookup.

        Once Lookup has been entered the choice is locked and a call changes nothing.
        """
        if not self.lookup_entered:
            self._profile = name

    # routing

    def tried_in(self, pool: str) -> set[str]:
        """Return the keys of the backends this transaction already used in `pool`."""
        if self.attempts is None:
            return set()
        return {attempt.backend.key for attempt in self.attempts if attempt.pool == pool}

    def record_attempt(self, pool: str, backend: Backend) -> None:
        """Record a successful Route: counter, attempt list, selected pool and backend."""
        self.attempt_count += 1
        if self.attempts is None:
            self.attempts = []
        self.attempts.append(Attempt(pool, backend, self.attempt_count))
        self.selected_pool = pool
        self.selected_backend = backend

    def take_source_override(self, ipv6: bool) -> str | None:
        """Return the local address policy wants for this attempt, or None.

        A retry source of the backend's family is used once, on an attempt after the first, and
        cleared even if it is refused later; otherwise the standing source of the family holds.
        """
        if self.attempt_count > 1:
            if ipv6:
                if self.retry_source_v6 is not None:
                    source, self.retry_source_v6 = self.retry_source_v6, None
                    return source
            elif self.retry_source_v4 is not None:
                source, self.retry_source_v4 = self.retry_source_v4, None
                return source
        return self.source_v6 if ipv6 else self.source_v4

    # failure

    def converge(self, reason: str) -> None:
        """Note why no answer came; the first reason of the transaction stays."""
        if self.convergence_reason is None:
            self.convergence_reason = reason

    def discard_answer(self) -> None:
        """Forget the stored answer, as a retry does (chapter 20 section 14)."""
        self.answer = None
        self.answer_source = None
        self.cache_instance = None
        self.cache_hit = None
        self.skip_response_rules = False
