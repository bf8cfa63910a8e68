"""The bounded queue between the query path and one sink, and what is counted at its entrance.

Putting never waits: a full queue loses one event, by the drop policy, and counts it. The lock is
held for a few operations on either side, never during input or output (chapter 50 section 5.6).
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from conduit.observe.events.dnstap import ClientMessage

#: One event: the message, shared among sinks, and the sink's own extra.
QueuedEvent = tuple[ClientMessage, bytes]

_KINDS: Final = 3
#: Seconds that the consumer lets events gather: each of its wake-ups disturbs the query path.
LINGER: Final = 0.005
#: So many events at most gather before it is woken all the same.
_GATHER: Final = 256


class EventQueue:
    """A FIFO of at most `depth` events for one consumer."""

    __slots__ = (
        "_depth",
        "_drop_oldest",
        "_events",
        "_gather",
        "_ready",
        "_waiting",
        "_woken",
        "counts",
    )

    def __init__(self, depth: int, drop_policy: str) -> None:
        """`drop_policy` is `drop_oldest` or `drop_newest`."""
        self._depth = depth
        self._drop_oldest = drop_policy != "drop_newest"
        self._events: deque[QueuedEvent] = deque()
        self._ready = threading.Condition(threading.Lock())
        # what waits to be woken: 0 nobody, else the number of events that is enough
        self._waiting = 0
        self._gather = max(1, min(_GATHER, depth // 2))
        self._woken = False
        #: Events enqueued by kind (QUERY, RESPONSE, RETRY), then those dropped.
        self.counts = [0] * (_KINDS + 1)

    def put(self, message: ClientMessage, extra: bytes) -> None:
        """Add one event, or drop one when the queue is full; never waits for the consumer.

        An event that overflowed counts as one drop and not as enqueued, under either policy.
        """
        with self._ready:
            events = self._events
            if len(events) < self._depth:
                self.counts[message.kind] += 1
                events.append((message, extra))
            else:
                self.counts[_KINDS] += 1
                if self._drop_oldest:
                    events.popleft()
                    events.append((message, extra))
            # waking a thread costs more than all the rest: only a consumer that sleeps is woken
            if self._waiting and len(events) >= self._waiting:
                self._waiting = 0
                self._ready.notify()

    def take(self, limit: int, timeout: float) -> list[QueuedEvent]:
        """Return up to `limit` events, the oldest first.

        Waits for the first one at most `timeout` seconds or until `wake`; then it may be empty.
        After the first one others may gather for `LINGER` seconds.
        """
        with self._ready:
            events = self._events
            if not events:
                self._wait(1, timeout)
                if 0 < len(events) < self._gather:
                    self._wait(self._gather, LINGER)
            self._woken = False
            return [events.popleft() for _ in range(min(limit, len(events)))]

    def _wait(self, enough: int, timeout: float) -> None:
        if not self._woken:
            self._waiting = enough
            self._ready.wait(timeout)
            self._waiting = 0

    def wake(self) -> None:
        """Make a `take` that waits, or else the next one, return."""
        with self._ready:
            self._woken = True
            self._ready.notify()

    @property
    def dropped(self) -> int:
        """Number of events lost to a full queue."""
        return self.counts[_KINDS]

    def __len__(self) -> int:
        return len(self._events)
