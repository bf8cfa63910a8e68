"""Pipeline traces: which queries are traced, what is noted, where traces wait for a reader.

A query that does not match costs one call; no trace leaves the process except through the store
and, on request, one log line (chapter 50 section 4).
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from conduit.config import Tracing
from conduit.observe.events.sample_filter import Predicate, compile_sampling
from conduit.observe.logging import Log, get_log
from conduit.policy.selectors import compile_selector

if TYPE_CHECKING:
    from conduit.transaction import Transaction

#: Most traces kept, and for how long (seconds).
MAX_TRACES: Final = 1000
MAX_AGE: Final = 300.0


class TraceEvent(NamedTuple):
    """The end of one phase; the names and their order are those of the JSON form.

    `elapsed_us` is microseconds since the transaction began, not the length of the phase.
    """

    phase: str
    elapsed_us: int
    message: str | None
    pool: str | None
    backend: str | None
    cache: str | None


class Trace:
    """The phases of one transaction, noted as they end, in time order."""

    __slots__ = ("_clock", "_last", "_started", "events")

    def __init__(self, started: float, clock: Callable[[], float]) -> None:
        """`started` is the transaction's start by `clock`, in seconds."""
        self._started = started
        self._clock = clock
        self._last = 0
        self.events: list[TraceEvent] = []

    def ended(self, phase: str, txn: Transaction) -> None:
        """A phase has ended now, with the pool, backend and cache that `txn` shows."""
        self.ended_at(phase, self._clock(), txn)

    def ended_at(self, phase: str, when: float, txn: Transaction) -> None:
        """A phase ended at `when` by the clock; `elapsed_us` never decreases."""
        self._last = max(self._last, int((when - self._started) * 1_000_000))
        backend = txn.selected_backend
        self.events.append(
            TraceEvent(
                phase,
                self._last,
                None,
                txn.selected_pool,
                None if backend is None else backend.label,
                txn.cache_instance,
            )
        )


def compile_activation(tracing: Tracing | None) -> Predicate | None:
    """Compile `tracing.activation`; None when the block is absent or not enabled.

    Raises ValueError for what validation would have refused.
    """
    if tracing is None or not tracing.enabled:
        return None
    activation = tracing.activation
    predicates: list[Predicate] = []
    if activation.tag:
        predicates.append(_has_tag(activation.tag))
    sampling = compile_sampling(
        activation.sample_percent, activation.sample_key or "", activation.sample_key_from or "", {}
    )
    if sampling is not None:
        predicates.append(sampling)
    for selector in activation.selectors:
        # Request rules have just run: no rcode is known
        predicates.append(
            _never if selector.type == "rcode" else compile_selector(selector, {}, {})
        )
    compiled = tuple(predicates)
    return lambda txn: all(predicate(txn) for predicate in compiled)


def _has_tag(key: str) -> Predicate:
    return lambda txn: txn.has_tag(key)


def _never(txn: Transaction) -> bool:
    return False


class TraceStore:
    """Finished traces by transaction id: at most 1000, for five minutes, then gone.

    Safe from several threads. Reading neither removes nor refreshes an entry.
    """

    __slots__ = ("_clock", "_entries", "_lock")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives monotonic seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: deque[tuple[float, str, tuple[TraceEvent, ...]]] = deque()

    def put(self, transaction_id: int, events: Sequence[TraceEvent]) -> None:
        """Keep the events of one transaction; an empty list is not kept."""
        if not events:
            return
        with self._lock:
            now = self._clock()
            self._expire(now)
            while len(self._entries) >= MAX_TRACES:
                self._entries.popleft()
            self._entries.append((now + MAX_AGE, str(transaction_id), tuple(events)))

    def get(self, transaction_id: str) -> tuple[TraceEvent, ...] | None:
        """Return the oldest trace of an id in decimal text; None for an unknown or other text."""
        with self._lock:
            self._expire(self._clock())
            for _, known, events in self._entries:
                if known == transaction_id:
                    return events
        return None

    def __len__(self) -> int:
        return len(self._entries)

    def _expire(self, now: float) -> None:
        entries = self._entries
        while entries and entries[0][0] <= now:
            entries.popleft()


def trace_json(events: Sequence[TraceEvent]) -> str:
    """Return the events as one compact JSON array; missing values are null."""
    return json.dumps(
        [event._asdict() for event in events], separators=(",", ":"), ensure_ascii=False
    )


class Tracer:
    """Activation, store and log line of the process; fixed from start to stop."""

    __slots__ = ("_log", "_log_json", "_matches", "store")

    def __init__(
        self, tracing: Tracing | None, store: TraceStore | None = None, log: Log | None = None
    ) -> None:
        """`tracing` is the validated block, if any. Raises ValueError like `compile_activation`."""
        self._matches = compile_activation(tracing)
        self._log_json = tracing is not None and tracing.output.log_json
        self._log = log if log is not None else get_log("conduit::trace")
        self.store = TraceStore() if store is None else store

    @property
    def enabled(self) -> bool:
        """True when a query may be traced: ask before measuring the first two phases."""
        return self._matches is not None

    def begin(
        self,
        txn: Transaction,
        clock: Callable[[], float],
        parse_ended: float,
        request_rules_ended: float,
    ) -> Trace | None:
        """Decide about `txn` after Request rules; None when it is not traced.

        The times are readings of `clock`; the two phases become the first events. No pool or
        backend was known while the query was parsed, so what policy chose shows from the second on.
        """
        if self._matches is None or not self._matches(txn):
            return None
        trace = Trace(txn.started, clock)
        parsed = max(0, int((parse_ended - txn.started) * 1_000_000))
        trace.events.append(TraceEvent("parse", parsed, None, None, None, None))
        trace.ended_at("request_rules", max(parse_ended, request_rules_ended), txn)
        return trace

    def finish(self, txn: Transaction, trace: Trace) -> None:
        """The transaction has ended with a reply: store the trace, log it where asked for."""
        self.store.put(txn.id, trace.events)
        if self._log_json and trace.events:
            self._log.info("pipeline trace", txn_id=txn.id, events=trace_json(trace.events))
