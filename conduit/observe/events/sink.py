"""One running sink: its queue, the thread that empties it, and its connections (chapter 50, 5.7).

The consumer thread connects to every destination, encodes and writes; a destination that fails
while another one works is tried again on its own back-off by a second thread of the sink, so that
a slow connect holds up no delivery.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from conduit.config import ConnectRetry
from conduit.observe.events.collector import (
    STALL_LIMIT,
    STALL_LIMIT_SHARED,
    ConnectFailed,
    Connection,
    Destination,
    Stopped,
    open_connection,
)
from conduit.observe.events.dnstap import (
    QUERY,
    RESPONSE,
    RETRY,
    EncodeError,
    encode_frame,
    encode_identity,
)
from conduit.observe.events.event_queue import EventQueue, QueuedEvent
from conduit.observe.events.frame_streams import encode_data
from conduit.observe.events.outage import Backoff, Outage
from conduit.observe.logging import get_log

_log = get_log("conduit_events")

#: Frames written with one system call at most.
BATCH: Final = 32
#: How often an idle consumer looks whether its collectors are still there, seconds.
IDLE: Final = 1.0

#: Opens one connection, or raises ConnectFailed.
Connect = Callable[[Destination, Stopped], Connection]


@dataclass(frozen=True, slots=True)
class SinkCounters:
    """What one sink has counted since the process started (chapter 50 section 5.6)."""

    enqueued_query: int = 0
    enqueued_response: int = 0
    enqueued_retry: int = 0
    queue_dropped: int = 0
    delivered: int = 0
    write_failed: int = 0
    encode_failed: int = 0
    connect_attempts: int = 0
    connected: bool = False


class _Link:
    """One destination of a sink: its connection, if any, and when to try again."""

    __slots__ = ("backoff", "connection", "destination", "due")

    def __init__(self, destination: Destination, backoff: Backoff) -> None:
        self.destination = destination
        self.backoff = backoff
        self.connection: Connection | None = None
        self.due = 0.0


class RunningSink:
    """The queue and the consumer of one sink; `start` it, `offer` events, `stop` it."""

    def __init__(
        self,
        name: str,
        identity: str,
        destinations: Sequence[Destination],
        queue: EventQueue,
        retry: ConnectRetry,
        connect: Connect = open_connection,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`identity` is the dnstap identity; `connect` opens a connection or raises ConnectFailed.

        `clock` is monotonic seconds and decides when to try a destination again.
        """
        self.name = name
        self.offer = queue.put
        self._queue = queue
        self._identity = encode_identity(identity.encode("utf-8", "replace"))
        self._links = [_Link(destination, Backoff(retry, uniform)) for destination in destinations]
        self._outage = Outage(name, retry, clock, uniform)
        self._connect = connect
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"events-{name}", daemon=True)
        # frames taken from the queue that found no connection left
        self._held: list[bytes] = []
        self._link_lock = threading.Lock()
        self._retrying: threading.Thread | None = None
        self._arrived: list[tuple[_Link, Connection | None]] = []
        self._ended = False
        self._delivered = 0
        self._write_failed = 0
        self._encode_failed = 0
        self._connect_attempts = 0

    def start(self) -> None:
        """Start the consumer."""
        self._thread.start()

    def request_stop(self) -> None:
        """Tell the consumer to end; it discards what is queued."""
        self._stop.set()
        self._queue.wake()

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for the consumer; True when it has ended."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def counters(self) -> SinkCounters:
        """Return the counters as they are now."""
        counts = self._queue.counts
        return SinkCounters(
            enqueued_query=counts[QUERY],
            enqueued_response=counts[RESPONSE],
            enqueued_retry=counts[RETRY],
            queue_dropped=self._queue.dropped,
            delivered=self._delivered,
            write_failed=self._write_failed,
            encode_failed=self._encode_failed,
            connect_attempts=self._connect_attempts,
            connected=any(link.connection is not None for link in self._links),
        )

    # the consumer thread

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._collect_arrived()
                if not self._live() and not self._connect_all():
                    break
                self._restore()
                frames, self._held = self._held, []
                if not frames:
                    frames = self._encode(self._queue.take(BATCH, IDLE))
                self._drop_departed()
                if frames and not self._stop.is_set():
                    self._deliver(frames)
        except Exception:
            _log.exception("dnstap sink failed", sink=self.name)
        finally:
            self._close_all()

    def _live(self) -> list[_Link]:
        return [link for link in self._links if link.connection is not None]

    def _connect_all(self) -> bool:
        """Try all destinations until one works; False when stopped or given up."""
        while not self._stop.is_set():
            self._connect_attempts += 1
            for link in self._links:
                # one that the second thread has brought meanwhile stays
                if link.connection is None:
                    self._try_link(link)
            self._collect_arrived()
            live = self._live()
            if live:
                self._outage.ended(len(live))
                return True
            if self._stop.is_set():
                return False
            delay = self._outage.failed(self._connect_attempts)
            if delay is None:
                return False
            self._stop.wait(delay)
        return False

    def _try_link(self, link: _Link) -> None:
        try:
            self._settle(link, self._connect(link.destination, self._stop.is_set))
        except ConnectFailed as error:
            if not self._stop.is_set():
                _log.debug("dnstap connect failed", sink=self.name, error=error)
            self._settle(link, None)

    def _settle(self, link: _Link, connection: Connection | None) -> None:
        """Note the outcome of one attempt at one destination."""
        link.connection = connection
        if connection is not None:
            link.backoff.reset()
        else:
            link.due = self._clock() + link.backoff.next_delay()

    # destinations that are down while another one is up

    def _restore(self) -> None:
        if self._retrying is not None or len(self._links) == 1:
            return
        now = self._clock()
        for link in self._links:
            if link.connection is None and link.due <= now:
                self._retrying = threading.Thread(
                    target=self._connect_aside,
                    args=(link,),
                    name=f"events-{self.name}-retry",
                    daemon=True,
                )
                self._retrying.start()
                return

    def _connect_aside(self, link: _Link) -> None:
        connection: Connection | None = None
        try:
            connection = self._connect(link.destination, self._stop.is_set)
        except ConnectFailed:
            pass
        with self._link_lock:
            if not self._ended:
                self._arrived.append((link, connection))
                connection = None
        if connection is not None:
            connection.close()
        self._queue.wake()

    def _collect_arrived(self) -> None:
        with self._link_lock:
            arrived, self._arrived = self._arrived, []
        for link, connection in arrived:
            self._retrying = None
            if link.connection is None:
                self._settle(link, connection)
            elif connection is not None:
                connection.close()

    # delivery

    def _encode(self, events: Sequence[QueuedEvent]) -> list[bytes]:
        frames = []
        for message, extra in events:
            try:
                frames.append(encode_data(encode_frame(self._identity, message, extra)))
            except EncodeError as error:
                self._encode_failed += 1
                _log.warn("dnstap encode failed", sink=self.name, error=error)
        return frames

    def _drop_departed(self) -> None:
        for link in self._live():
            if link.connection is not None and link.connection.peer_left():
                self._lose(link)

    def _deliver(self, frames: list[bytes]) -> None:
        live = self._live()
        if not live:
            # nothing was written: the frames wait for the next connection
            self._held = frames
            return
        attempted = 0
        for link in live:
            connection = link.connection
            if connection is None:
                continue
            limit = STALL_LIMIT if len(live) == 1 else STALL_LIMIT_SHARED
            whole = connection.write(frames, limit)
            self._delivered += whole
            attempted = max(attempted, min(whole + 1, len(frames)))
            if whole < len(frames):
                if self._stop.is_set():
                    return
                self._write_failed += 1
                self._lose(link)
        if not self._live():
            # the frame being written is lost, those behind it are not
            self._held = frames[attempted:]

    def _lose(self, link: _Link) -> None:
        connection, link.connection = link.connection, None
        if connection is not None:
            connection.close()
        link.backoff.reset()
        link.due = self._clock() + link.backoff.next_delay()
        if not self._live():
            self._outage.disconnected()

    def _close_all(self) -> None:
        with self._link_lock:
            self._ended = True
            arrived, self._arrived = self._arrived, []
        for _, connection in arrived:
            if connection is not None:
                connection.close()
        for link in self._live():
            if link.connection is not None:
                link.connection.close()
                link.connection = None
