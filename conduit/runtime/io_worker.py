"""An I/O worker of `split_io`: matches replies, enforces timeouts, resumes transactions.

Policy threads register a forward and send it from this worker's socket; the worker's own thread
only receives and watches the time. A forward is registered before it is sent, so that an instant
reply finds it (chapter 20 section 4.2).
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from conduit.observe.logging import get_log
from conduit.runtime.io_tcp import TcpForward
from conduit.runtime.pending import PendingForward
from conduit.upstream.exchange import (
    RESULT_SEND_ERROR,
    RESULT_TCP_ERROR,
    RESULT_TIMEOUT,
    TCP,
    UDP_WITH_TCP_FALLBACK,
    Exchange,
    ExchangeResult,
)
from conduit.upstream.source import SourceSelector
from conduit.wire import is_truncated, reply_matches

_log = get_log("conduit_core")

#: Called when a forward has ended: the worker, the forward and its result.
Complete = Callable[["IoWorker", PendingForward, ExchangeResult], None]

_BATCH: Final = 64
_TICK_SECONDS: Final = 0.05
# uses of one socket before its port changes; the old one stays open until its replies are in
_MIN_USES: Final = 24
# under load the port changes with the time instead, so that few old sockets stay open
_MIN_SECONDS: Final = 0.02


class _EgressSocket:
    __slots__ = ("opened", "sock", "uses_left")

    def __init__(self, family: int, source: str | None) -> None:
        self.sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self.sock.setblocking(False)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            self.sock.bind((source or ("::" if family == socket.AF_INET6 else "0.0.0.0"), 0))
        except OSError:
            self.sock.close()
            raise
        self.opened = time.monotonic()
        self.uses_left = _MIN_USES + os.urandom(1)[0] % _MIN_USES


class IoWorker(threading.Thread):
    """One receive loop with its own egress sockets and pending forwards."""

    def __init__(self, number: int, sources: SourceSelector, complete: Complete) -> None:
        super().__init__(name=f"conduit-io-{number}", daemon=True)
        self._sources = sources
        self._complete = complete
        # guards sockets and round robin, which any policy thread uses
        self._lock = threading.Lock()
        self._egress: dict[tuple[int, str | None], _EgressSocket] = {}
        #: By address and id of the reply that is waited for.
        self._pending: dict[tuple[object, int], PendingForward] = {}
        self._tcp: dict[PendingForward, TcpForward] = {}
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._conversations: dict[int, TcpForward] = {}
        self._retired: deque[tuple[float, socket.socket]] = deque()
        # forwards in order of their start, one queue for each timeout in use: each is in order
        # of its deadlines too
        self._timed: dict[float, deque[PendingForward]] = {}
        self._requests: deque[Callable[[], None]] = deque()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # a buffer of its own: a large allocation a receive would tear the heap to pieces
        self._buffer = memoryview(bytearray(65535))
        self._asleep = True
        self._stop_requested = False
        self.last_alive = time.monotonic()

    # any thread

    def choose_source(self, exchange: Exchange) -> str | None:
        """Return the local address for one attempt."""
        with self._lock:
            return self._sources.choose(
                exchange.pool, exchange.backend.is_ipv6, exchange.source_override
            )

    def start_forward(self, pending: PendingForward) -> ExchangeResult | None:
        """Register and send one forward; a result when it failed at once, else None."""
        exchange = pending.exchange
        if exchange.timeout <= 0:
            return RESULT_TIMEOUT
        if exchange.transport == TCP:
            self._watch(pending)
            self._ask(lambda: self._connect(pending))
            return None
        key = (exchange.backend.sockaddr, pending.query_id)
        try:
            sock = self._socket(exchange.backend.family, pending.source, exchange.timeout)
        except OSError as error:
            _log.debug("no egress socket", backend=exchange.backend.label, error=error)
            return RESULT_SEND_ERROR
        self._pending[key] = pending
        self._watch(pending)
        try:
            sock.sendto(pending.message, exchange.backend.sockaddr)
        except OSError as error:
            self._pending.pop(key, None)
            _log.debug("forward send failed", backend=exchange.backend.label, error=error)
            # the timer may have been first
            return RESULT_SEND_ERROR if pending.claim() else None
        if self._asleep:
            self._wake()
        return None

    def stop(self) -> None:
        """End the thread."""
        self._stop_requested = True
        self._wake()

    def _watch(self, pending: PendingForward) -> None:
        timeout = pending.exchange.timeout
        queue = self._timed.get(timeout)
        if queue is None:
            # a reload changed the timeout; setdefault is one atomic call
            queue = self._timed.setdefault(timeout, deque())
        queue.append(pending)

    def _ask(self, request: Callable[[], None]) -> None:
        self._requests.append(request)
        self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except OSError:
            # full: a wake-up is on its way
            pass

    def _socket(self, family: int, source: str | None, timeout: float) -> socket.socket:
        key = (family, source)
        with self._lock:
            egress = self._egress.get(key)
            if egress is not None:
                egress.uses_left -= 1
                if egress.uses_left > 0 or time.monotonic() < egress.opened + _MIN_SECONDS:
                    return egress.sock
            old = egress
            try:
                egress = _EgressSocket(family, source)
            except OSError:
                if source is None:
                    raise
                # a source that came by a reload and cannot be bound (chapter 20 section 12.6)
                egress = _EgressSocket(family, None)
            self._egress[key] = egress
            self._sockets[egress.sock.fileno()] = egress.sock
            self._poll.register(egress.sock, select.EPOLLIN)
        if old is not None:
            retired = old.sock
            # every forward that was sent from it has ended by then
            closes = time.monotonic() + timeout + 1.0
            self._ask(lambda: self._retire(retired, closes))
        return egress.sock

    # the worker's own thread

    def run(self) -> None:
        self._poll.register(self._wake_read, select.EPOLLIN)
        while not self._stop_requested:
            try:
                self._pass()
            except Exception:
                _log.exception("I/O loop failed, going on")
                time.sleep(0.05)

    def _pass(self) -> None:
        now = self.last_alive = time.monotonic()
        due = min(
            (queue[0].exchange.deadline for queue in self._timed.values() if queue), default=None
        )
        if due is None:
            # nothing is in flight: a registration from now on wakes this thread
            self._asleep = True
            wait = 0.0 if any(self._timed.values()) else 1.0
        else:
            wait = min(_TICK_SECONDS, max(0.0, due - now))
        events = self._poll.poll(wait)
        self._asleep = False
        for descriptor, _ in events:
            sock = self._sockets.get(descriptor)
            if sock is not None:
                self._receive(sock)
            elif descriptor == self._wake_read:
                self._drain_wake_ups()
            elif (conversation := self._conversations.get(descriptor)) is not None:
                self._advance(conversation)
        while self._requests:
            self._requests.popleft()()
        self._expire(time.monotonic())

    def _drain_wake_ups(self) -> None:
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            pass

    def _receive(self, sock: socket.socket) -> None:
        receive, pending_of, buffer = sock.recvfrom_into, self._pending.get, self._buffer
        for _ in range(_BATCH):
            try:
                size, address = receive(buffer)
            except BlockingIOError:
                return
            except OSError as error:
                _log.debug("forward receive failed", error=error)
                return
            if size < 12:
                continue
            reply = bytes(buffer[:size])
            key = (address, (reply[0] << 8) | reply[1])
            pending = pending_of(key)
            if pending is None or not reply_matches(
                reply, pending.query_id, pending.exchange.question
            ):
                continue
            if pending.exchange.transport == UDP_WITH_TCP_FALLBACK and is_truncated(reply):
                # the id stays taken: the attempt goes on over TCP until the same deadline
                pending.truncated_reply = reply
                del self._pending[key]
                self._connect(pending)
                continue
            del self._pending[key]
            if pending.claim():
                self._complete(self, pending, pending.result(reply))

    def _connect(self, pending: PendingForward) -> None:
        try:
            forward = TcpForward(pending)
        except OSError as error:
            self._tcp_failed(pending, error)
            return
        self._tcp[pending] = forward
        self._conversations[forward.sock.fileno()] = forward
        self._poll.register(forward.sock, select.EPOLLOUT)

    def _advance(self, forward: TcpForward) -> None:
        was_writing = forward.writing
        try:
            reply = forward.advance()
        except OSError as error:
            self._close_tcp(forward.pending)
            self._tcp_failed(forward.pending, error)
            return
        if reply is not None:
            self._close_tcp(forward.pending)
            if forward.pending.claim():
                self._complete(self, forward.pending, forward.pending.result(reply))
        elif was_writing and not forward.writing:
            self._poll.modify(forward.sock, select.EPOLLIN)

    def _close_tcp(self, pending: PendingForward) -> None:
        forward = self._tcp.pop(pending, None)
        if forward is not None:
            del self._conversations[forward.sock.fileno()]
            # closing takes it out of the poll set
            forward.close()

    def _tcp_failed(self, pending: PendingForward, error: OSError) -> None:
        _log.debug("forward over TCP failed", backend=pending.exchange.backend.label, error=error)
        if pending.claim():
            truncated = pending.truncated_reply
            result = RESULT_TCP_ERROR if truncated is None else pending.result(truncated)
            self._complete(self, pending, result)

    def _expire(self, now: float) -> None:
        for queue in list(self._timed.values()):
            # what has been answered leaves the queue when its turn comes
            while queue and (queue[0].ended or queue[0].exchange.deadline <= now):
                pending = queue.popleft()
                if pending.claim():
                    self._time_out(pending)
        while self._retired and self._retired[0][0] <= now:
            sock = self._retired.popleft()[1]
            del self._sockets[sock.fileno()]
            sock.close()

    def _time_out(self, pending: PendingForward) -> None:
        self._pending.pop((pending.exchange.backend.sockaddr, pending.query_id), None)
        self._close_tcp(pending)
        truncated = pending.truncated_reply
        result = RESULT_TIMEOUT if truncated is None else pending.result(truncated)
        self._complete(self, pending, result)

    def _retire(self, sock: socket.socket, closes: float) -> None:
        # replies to it are still read by the selector until it is closed
        self._retired.append((closes, sock))
