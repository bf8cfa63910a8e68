"""One upstream TCP conversation driven by an I/O worker's selector, without blocking."""

from __future__ import annotations

import os
import socket

from conduit.runtime.pending import PendingForward
from conduit.wire import reply_matches


class TcpForward:
    """Connects, sends one framed query and reads until the matching reply is there."""

    __slots__ = ("_buffer", "_outgoing", "pending", "sock")

    def __init__(self, pending: PendingForward) -> None:
        """Start connecting; raises OSError when that fails at once."""
        self.pending = pending
        backend = pending.exchange.backend
        self.sock = socket.socket(backend.family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self.sock.setblocking(False)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if pending.source is not None:
                self.sock.bind((pending.source, 0))
            try:
                self.sock.connect(backend.sockaddr)
            except BlockingIOError:
                pass
        except OSError:
            self.sock.close()
            raise
        message = pending.message
        self._outgoing = len(message).to_bytes(2, "big") + message
        self._buffer = b""

    @property
    def writing(self) -> bool:
        """True while the query has not been sent whole."""
        return bool(self._outgoing)

    def advance(self) -> bytes | None:
        """Go on after the socket became ready; returns the reply once it is there.

        Raises OSError when the conversation has failed.
        """
        try:
            if self._outgoing:
                error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, os.strerror(error))
                sent = self.sock.send(self._outgoing)
                self._outgoing = self._outgoing[sent:]
                return None
            chunk = self.sock.recv(65536)
        except BlockingIOError:
            return None
        if not chunk:
            raise ConnectionResetError("backend closed the connection")
        self._buffer += chunk
        exchange = self.pending.exchange
        while len(self._buffer) >= 2:
            length = int.from_bytes(self._buffer[:2], "big")
            if len(self._buffer) < length + 2:
                return None
            reply = self._buffer[2 : length + 2]
            self._buffer = self._buffer[length + 2 :]
            if reply_matches(reply, self.pending.query_id, exchange.question):
                return reply
        return None

    def close(self) -> None:
        """Close the connection."""
        self.sock.close()
