"""One TCP client connection: framing, pipelining, and replies written by worker threads.

The acceptor's thread reads, closes and finishes partial writes; a worker only hands a reply over
(RFC 7766 sections 6.2.1.1 and 7). No method blocks.
"""

from __future__ import annotations

import socket
import threading
from typing import Final

#: Seconds without a complete message or an answer after which a connection closes.
IDLE_SECONDS: Final = 5.0
#: Queries of one connection in progress at once; reading pauses there.
MAX_IN_FLIGHT: Final = 64
#: Octets of replies that a client may leave unread before its connection closes.
MAX_UNREAD: Final = 1 << 20


class TcpClient:
    """State of one connection; `deadline` is a time of the monotonic clock."""

    __slots__ = (
        "_lock",
        "address",
        "body_started",
        "buffer",
        "closed",
        "deadline",
        "finishing",
        "in_flight",
        "outgoing",
        "paused",
        "port",
        "sock",
    )

    def __init__(self, sock: socket.socket, address: str, port: int, now: float) -> None:
        self.sock = sock
        self.address = address
        self.port = port
        self.buffer = bytearray()
        self.outgoing = bytearray()
        self.in_flight = 0
        #: No more reading; close once everything in flight has been answered.
        self.finishing = False
        self.paused = False
        self.closed = False
        self.body_started = False
        self.deadline = now + IDLE_SECONDS
        self._lock = threading.Lock()

    def next_message(self, now: float) -> bytes | None:
        """Take one complete message out of the buffer, or None when it is not there yet.

        A zero length prefix gives an empty message, which the caller answers by closing. The time
        limit starts anew when the prefix is complete and when the message is, and not in between:
        a client that sends an octet a second gains nothing by it.
        """
        buffer = self.buffer
        if len(buffer) < 2:
            return None
        length = int.from_bytes(buffer[:2], "big")
        if len(buffer) < length + 2:
            if not self.body_started:
                self.body_started = True
                self.deadline = now + IDLE_SECONDS
            return None
        message = bytes(buffer[2 : length + 2])
        del buffer[: length + 2]
        self.body_started = False
        self.deadline = now + IDLE_SECONDS
        return message

    def query_started(self) -> None:
        """One more query of this connection is in progress."""
        with self._lock:
            self.in_flight += 1

    def query_ended(self, reply: bytes | None, now: float) -> bool:
        """End one query, with its reply or without; True when the acceptor has work to do.

        Work is: finish a partial write, resume reading, or close.
        """
        with self._lock:
            self.in_flight -= 1
            if self.closed:
                return False
            self.deadline = now + IDLE_SECONDS
            if reply is None:
                self.finishing = True
                return True
            frame = len(reply).to_bytes(2, "big") + reply
            if self.outgoing:
                self.outgoing += frame
                return True
            try:
                sent = self.sock.send(frame, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.finishing = True
                self.in_flight = min(self.in_flight, 0)
                return True
            if sent < len(frame):
                self.outgoing += frame[sent:]
                return True
            return self.paused or (self.finishing and self.in_flight == 0)

    def flush(self) -> bool:
        """Write what is left of replies; False when the connection is broken or abused."""
        with self._lock:
            if len(self.outgoing) > MAX_UNREAD:
                return False
            try:
                while self.outgoing:
                    sent = self.sock.send(self.outgoing, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                    del self.outgoing[:sent]
            except BlockingIOError:
                pass
            except OSError:
                return False
            return True

    @property
    def done(self) -> bool:
        """True when a finishing connection has nothing left to say."""
        with self._lock:
            return self.finishing and self.in_flight <= 0 and not self.outgoing

    @property
    def idle(self) -> bool:
        """True when no query is in progress and nothing waits to be written."""
        with self._lock:
            return self.in_flight <= 0 and not self.outgoing

    def close(self) -> None:
        """Close the socket; replies that come later are dropped."""
        with self._lock:
            if not self.closed:
                self.closed = True
                self.sock.close()
