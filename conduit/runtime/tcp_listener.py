"""TCP listeners: an acceptor thread that multiplexes its client connections (chapter 20, 2.3).

Several queries may come on one connection and are answered as they are ready (RFC 7766). At most
`MAX_CONNECTIONS` stay open an acceptor; the longest idle one makes room for a new one.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import threading
from collections import deque
from typing import Final

from conduit.config import Listener
from conduit.observe.logging import get_log
from conduit.runtime.ingress import Admission, Ingress, IngressContext, client_text
from conduit.runtime.tcp_client import MAX_IN_FLIGHT, TcpClient

_log = get_log("conduit_core")

MAX_CONNECTIONS: Final = 128
BACKLOG: Final = 128
_TICK_SECONDS: Final = 0.25
_QUIET_TICK_SECONDS: Final = 1.0
# pause after accept ran out of descriptors, so that the loop does not spin
_ACCEPT_PAUSE_SECONDS: Final = 0.2
_RECEIVE_SIZE: Final = 65536
_OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class TcpListener(threading.Thread):
    """Accepts on a listening socket (shared by the acceptors of one entry) and serves it."""

    protocol = "tcp"
    is_tcp = True

    def __init__(
        self,
        sock: socket.socket,
        entry: Listener,
        context: IngressContext,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        """`sock` listens and is non-blocking."""
        super().__init__(name=f"conduit-tcp-{entry.label}", daemon=True)
        self.label = entry.label
        self._ingress = Ingress(context, self, entry)
        self._sock = sock
        self._context = context
        self._clock = context.clock
        # in order of arrival, so that of equally idle clients the oldest goes first
        self._clients: dict[TcpClient, None] = {}
        self._max_connections = max_connections
        self._selector = selectors.DefaultSelector()
        self._attention: deque[TcpClient] = deque()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stop_requested = False
        self._accept_resumes = 0.0
        self._accepting = False
        self.last_alive = context.clock()

    # the acceptor's own thread

    def run(self) -> None:
        ingress = self._ingress
        selector = self._selector
        selector.register(self._wake_read, selectors.EVENT_READ)
        self._set_accepting(True)
        next_sweep = 0.0
        try:
            while not self._stop_requested:
                timeout = (
                    _TICK_SECONDS if self._clients or not self._accepting else (_QUIET_TICK_SECONDS)
                )
                events = selector.select(timeout)
                now = self.last_alive = self._clock()
                for key, mask in events:
                    if key.fileobj is self._sock:
                        self._accept(now)
                    elif isinstance(key.data, TcpClient):
                        self._serve(key.data, mask, ingress, now)
                    else:
                        self._drain_wake_ups()
                while self._attention:
                    self._attend(self._attention.popleft(), ingress, now)
                if now >= next_sweep:
                    next_sweep = now + _TICK_SECONDS
                    self._sweep(now)
        finally:
            for client in list(self._clients):
                self._close(client)
            selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            ingress.close()

    def _set_accepting(self, accepting: bool) -> None:
        if accepting == self._accepting:
            return
        self._accepting = accepting
        if accepting:
            self._selector.register(self._sock, selectors.EVENT_READ)
        else:
            self._selector.unregister(self._sock)

    def _accept(self, now: float) -> None:
        for _ in range(16):
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    _log.warn("TCP accept failed", listener=self.label, error=error)
                    self._close_longest_idle()
                    self._set_accepting(False)
                    self._accept_resumes = now + _ACCEPT_PAUSE_SECONDS
                return
            address_text = client_text(address[0])
            if not self._ingress.admits_connection(address_text):
                sock.close()
                continue
            if len(self._clients) >= self._max_connections and not self._close_longest_idle():
                sock.close()
                continue
            sock.setblocking(False)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError:
                sock.close()
                continue
            client = TcpClient(sock, address_text, address[1], now)
            self._clients[client] = None
            self._selector.register(sock, selectors.EVENT_READ, client)

    def _serve(self, client: TcpClient, mask: int, ingress: Ingress, now: float) -> None:
        if client.closed:
            return
        if mask & selectors.EVENT_WRITE and not client.flush():
            self._close(client)
            return
        if mask & selectors.EVENT_READ and not client.finishing:
            try:
                chunk = client.sock.recv(_RECEIVE_SIZE)
            except BlockingIOError:
                chunk = None
            except OSError:
                self._close(client)
                return
            if chunk:
                client.buffer += chunk
                self._take_messages(client, ingress, now)
            elif chunk is not None:
                # half-close: what is in flight is still answered (RFC 7766 section 6.2.3)
                client.finishing = True
        self._settle(client)

    def _take_messages(self, client: TcpClient, ingress: Ingress, now: float) -> None:
        while not client.finishing and client.in_flight < MAX_IN_FLIGHT:
            message = client.next_message(now)
            if message is None:
                break
            if not message:
                client.finishing = True
                break
            client.query_started()
            admission = ingress.admit(message, client.address, client.port, client)
            if admission is Admission.DISCARDED:
                client.query_ended(None, now)
            elif admission is Admission.ANSWERED:
                # a refused client is answered once and then let go
                client.finishing = True

    def _attend(self, client: TcpClient, ingress: Ingress, now: float) -> None:
        if client.closed:
            return
        if client.paused:
            self._take_messages(client, ingress, now)
        if client.outgoing and not client.flush():
            self._close(client)
            return
        self._settle(client)

    def _settle(self, client: TcpClient) -> None:
        """Close a finished client, else watch for what it waits for."""
        if client.done:
            self._close(client)
            return
        client.paused = client.in_flight >= MAX_IN_FLIGHT
        wanted = 0
        if not client.finishing and not client.paused:
            wanted |= selectors.EVENT_READ
        if client.outgoing:
            wanted |= selectors.EVENT_WRITE
        try:
            known = self._selector.get_map().get(client.sock)
            if known is None:
                if wanted:
                    self._selector.register(client.sock, wanted, client)
            elif not wanted:
                self._selector.unregister(client.sock)
            elif known.events != wanted:
                self._selector.modify(client.sock, wanted, client)
        except (KeyError, ValueError, OSError):
            self._close(client)

    def _sweep(self, now: float) -> None:
        for client in [c for c in self._clients if c.deadline <= now]:
            # a query in progress is answered, or ended by its own limits
            if client.in_flight <= 0 or client.outgoing:
                self._close(client)
        if not self._accepting and now >= self._accept_resumes:
            self._set_accepting(True)

    def _close_longest_idle(self) -> bool:
        idle = [client for client in self._clients if client.idle]
        if not idle:
            return False
        self._close(min(idle, key=lambda client: client.deadline))
        return True

    def _close(self, client: TcpClient) -> None:
        self._clients.pop(client, None)
        if not client.closed:
            try:
                self._selector.unregister(client.sock)
            except (KeyError, ValueError):
                pass
            client.close()

    def _drain_wake_ups(self) -> None:
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            pass

    # worker threads

    def reply(self, client_context: TcpClient, wire: bytes) -> None:
        """Hand a reply to the client's connection; never blocks."""
        self._end(client_context, wire)

    def no_reply(self, client_context: TcpClient) -> None:
        """Close the connection without a reply, as soon as nothing else is in flight on it."""
        self._end(client_context, None)

    def _end(self, client: TcpClient, wire: bytes | None) -> None:
        if client.query_ended(wire, self._clock()):
            self._attention.append(client)
            self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except OSError:
            # the pipe is full, so a wake-up is on its way; or the acceptor has ended
            pass

    def stop(self) -> None:
        """Ask the thread to end and wake it up."""
        self._stop_requested = True
        self._wake()

    def close(self) -> None:
        """Close the listening socket, after the thread has ended."""
        self._sock.close()
