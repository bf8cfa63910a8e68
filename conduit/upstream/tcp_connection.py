"""TCP connections towards backends, kept for reuse (RFC 7766 section 6.2.1).

Idle connections are shared by all workers. A connection that the backend closed while it was idle
is noticed when it is used, and the exchange goes on over a new one within the same deadline.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from conduit.upstream.backend import Backend

_IDLE_SECONDS = 8.0
_MAX_IDLE_PER_BACKEND = 32


class TcpConnection:
    """One connected stream to a backend with a buffer for what was read ahead."""

    __slots__ = ("_buffer", "reused", "sock")

    def __init__(self, backend: Backend, source: str | None, timeout: float) -> None:
        """Connect within `timeout` seconds; raises OSError (TimeoutError when time ran out)."""
        self.sock = socket.socket(backend.family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.reused = False
        self._buffer = b""
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if source is not None:
                self.sock.bind((source, 0))
            self.sock.settimeout(timeout)
            self.sock.connect(backend.sockaddr)
        except OSError:
            self.sock.close()
            raise

    def send(self, message: bytes, timeout: float) -> None:
        """Send one framed message; raises OSError."""
        self.sock.settimeout(timeout)
        self.sock.sendall(len(message).to_bytes(2, "big") + message)

    def receive(self, deadline: float, clock: Callable[[], float]) -> bytes:
        """Return the next framed message.

        Raises TimeoutError at `deadline`, ConnectionError when the backend closes or resets, other
        OSError as the system reports it.
        """
        while True:
            buffer = self._buffer
            if len(buffer) >= 2:
                length = int.from_bytes(buffer[:2], "big")
                if len(buffer) >= length + 2:
                    self._buffer = buffer[length + 2 :]
                    return buffer[2 : length + 2]
            remaining = deadline - clock()
            if remaining <= 0:
                raise TimeoutError
            self.sock.settimeout(remaining)
            chunk = self.sock.recv(65536)
            if not chunk:
                raise ConnectionResetError("backend closed the connection")
            self._buffer = buffer + chunk

    @property
    def clean(self) -> bool:
        """True when nothing is left in the buffer: the connection may serve another query."""
        return not self._buffer

    def close(self) -> None:
        """Close the stream."""
        self.sock.close()


class TcpConnectionPool:
    """Idle connections of the process by backend address and source address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str | None], list[tuple[float, TcpConnection]]] = {}

    def take(self, backend: Backend, source: str | None) -> TcpConnection | None:
        """Return an idle connection, the last used first, or None."""
        expired: list[TcpConnection] = []
        taken: TcpConnection | None = None
        with self._lock:
            idle = self._idle.get((backend.key, source))
            limit = self._clock() - _IDLE_SECONDS
            while idle:
                since, connection = idle.pop()
                if since >= limit:
                    taken = connection
                    break
                expired.append(connection)
            if idle is not None and not idle:
                del self._idle[(backend.key, source)]
        for connection in expired:
            connection.close()
        if taken is not None:
            taken.reused = True
        return taken

    def give(self, backend: Backend, source: str | None, connection: TcpConnection) -> None:
        """Keep a connection whose last exchange ended well, for the next one."""
        now = self._clock()
        surplus: list[TcpConnection] = []
        with self._lock:
            idle = self._idle.setdefault((backend.key, source), [])
            idle.append((now, connection))
            while idle and (len(idle) > _MAX_IDLE_PER_BACKEND or idle[0][0] < now - _IDLE_SECONDS):
                surplus.append(idle.pop(0)[1])
        for old in surplus:
            old.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for _, connection in connections:
                connection.close()
