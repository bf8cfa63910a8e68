"""Terminates TLS in front of the gRPC server, because the library hides failed handshakes.

One thread and one selector serve all connections; a slow handshake delays nobody. Each accepted
connection is relayed to the server's private socket under a name of its own, by which the server
finds out who is behind it (chapter 60 sections 2 and 4).
"""

from __future__ import annotations

import contextlib
import secrets
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from conduit.observe.logging import get_log

_log = get_log("conduit_control")

#: Seconds that a handshake, or the rest of a connection that the server has ended, may take.
HANDSHAKE_SECONDS: Final = 10.0
#: Most connections at once; a new one takes the place of the one that is idle longest.
MAX_CONNECTIONS: Final = 2048
# octets that wait for one side before the other is not read any more
_BUFFERED: Final = 64 * 1024
_CHUNK: Final = 16 * 1024
# seconds without accepting when the system has no descriptor left
_ACCEPT_PAUSE: Final = 1.0
# connections that have ended and are still known: a call may outlive its connection
_REMEMBERED: Final = 1024


@dataclass(frozen=True)
class Client:
    """Who is behind a relayed connection."""

    peer: str
    has_certificate: bool


class _Relay:
    """One connection: the client's TLS side and, after the handshake, the server's side."""

    __slots__ = (
        "active",
        "client",
        "deadline",
        "name",
        "peer",
        "server",
        "server_ended",
        "to_client",
        "to_server",
    )

    def __init__(self, client: ssl.SSLSocket, peer: str) -> None:
        self.client = client
        self.peer = peer
        self.server: socket.socket | None = None
        self.name = ""
        self.active = time.monotonic()
        self.deadline = self.active + HANDSHAKE_SECONDS
        self.server_ended = False
        self.to_client = bytearray()
        self.to_server = bytearray()


class TlsFront(threading.Thread):
    """Accepts on a bound socket and relays to the unix socket at `path`."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext, path: str) -> None:
        super().__init__(name="conduit-control-tls", daemon=True)
        self._listener = listener
        self._context = context
        self._path = path
        self._selector = selectors.DefaultSelector()
        self._relays: set[_Relay] = set()
        # those with a deadline, the next one first
        self._timed: dict[_Relay, None] = {}
        self._ended: deque[str] = deque()
        self._accepting = True
        self._paused_until = 0.0
        self._stop_requested = False
        #: By the name that the server sees; the names cannot be guessed.
        self.clients: dict[str, Client] = {}
        listener.setblocking(False)

    def run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        while not self._stop_requested:
            for key, _ in self._selector.select(0.5):
                try:
                    if key.data is None:
                        self._accept()
                    else:
                        self._serve(key.data)
                except Exception:
                    # a bug must cost one connection, not all of them
                    _log.exception("control plane connection failed", tls=True)
                    if key.data is not None:
                        self._close(key.data)
            self._look_at_the_clock()
        for relay in list(self._relays):
            self._close(relay)
        self._selector.close()
        self._listener.close()

    def stop_accepting(self) -> None:
        """Refuse new connections; the others go on."""
        self._accepting = False
        # wakes the thread, too
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        """End the thread and every connection."""
        self._stop_requested = True
        if self.ident is None:
            self._listener.close()
        else:
            self.join(2.0)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        while self._timed:
            relay = next(iter(self._timed))
            if now <= relay.deadline:
                break
            if relay.server is None:
                self._failed(relay, "handshake timed out")
            else:
                self._close(relay)
        if self._paused_until and now >= self._paused_until:
            self._paused_until = 0.0
            self._selector.register(self._listener, selectors.EVENT_READ, None)

    def _accept(self) -> None:
        if not self._accepting:
            self._selector.unregister(self._listener)
            self._listener.close()
            return
        try:
            accepted, address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            _log.warn("control plane connection failed", tls=True, error=error)
            # out of descriptors, most likely: let others end first
            self._selector.unregister(self._listener)
            self._paused_until = time.monotonic() + _ACCEPT_PAUSE
            return
        if len(self._relays) >= MAX_CONNECTIONS:
            # one that is still shaking hands goes first
            idle = min(self._relays, key=lambda r: (r.server is not None, r.active))
            self._failed(idle, "too many connections: the one that was idle longest was closed")
        peer = _text_of(address)
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = self._context.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )
        except (OSError, ValueError) as error:
            # the client has taken its connection back
            accepted.close()
            _log.warn("control plane connection failed", tls=True, error=error, peer=peer)
            return
        relay = _Relay(client, peer)
        self._relays.add(relay)
        self._timed[relay] = None
        self._selector.register(client, selectors.EVENT_READ, relay)
        self._shake(relay)

    def _shake(self, relay: _Relay) -> None:
        try:
            relay.client.do_handshake()
        except ssl.SSLWantReadError:
            self._selector.modify(relay.client, selectors.EVENT_READ, relay)
            return
        except ssl.SSLWantWriteError:
            self._selector.modify(relay.client, selectors.EVENT_WRITE, relay)
            return
        except (OSError, ValueError) as error:
            self._failed(relay, getattr(error, "reason", None) or str(error) or "connection closed")
            return
        if relay.client.selected_alpn_protocol() != "h2":
            self._failed(relay, "the client does not speak HTTP/2 (ALPN h2)")
            return
        self._connect(relay)

    def _connect(self, relay: _Relay) -> None:
        self._timed.pop(relay, None)
        # every user of the host may bind such a name: a name that is known before could be taken
        name = f"conduit-control-{secrets.token_hex(16)}"
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            server.bind(f"\0{name}")
            server.connect(self._path)
        except OSError as error:
            server.close()
            self._failed(relay, f"no server: {error}")
            return
        server.setblocking(False)
        relay.server, relay.name = server, name
        has_certificate = relay.client.getpeercert(binary_form=True) is not None
        self.clients[name] = Client(relay.peer, has_certificate)
        self._selector.register(server, selectors.EVENT_READ, relay)
        # what came together with the last handshake message is in the TLS layer already
        self._serve(relay)

    def _serve(self, relay: _Relay) -> None:
        if relay not in self._relays:
            return
        if relay.server is None:
            self._shake(relay)
            return
        relay.active = time.monotonic()
        try:
            self._move(relay)
        except (OSError, ValueError):
            self._close(relay)

    def _move(self, relay: _Relay) -> None:
        """Carry what can be carried in both directions; raises OSError when a side has ended."""
        if not relay.server_ended:
            self._carry_to_server(relay)
            self._read_server(relay)
        while relay.to_client:
            try:
                del relay.to_client[: relay.client.send(relay.to_client)]
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
        if not relay.server_ended:
            self._watch(relay)
        elif not relay.to_client:
            raise ConnectionError("the server has ended")

    def _carry_to_server(self, relay: _Relay) -> None:
        assert relay.server is not None
        while len(relay.to_server) < _BUFFERED:
            try:
                octets = relay.client.recv(_CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not octets:
                # a client that has ended gets nothing more: it could hold us without reading
                raise ConnectionError("the client has ended")
            relay.to_server += octets
        if relay.to_server:
            with contextlib.suppress(BlockingIOError):
                del relay.to_server[: relay.server.send(relay.to_server)]

    def _read_server(self, relay: _Relay) -> None:
        assert relay.server is not None
        while len(relay.to_client) < _BUFFERED:
            try:
                octets = relay.server.recv(_CHUNK)
            except BlockingIOError:
                return
            if not octets:
                # its last words are delivered, for a while
                relay.server_ended = True
                relay.deadline = time.monotonic() + HANDSHAKE_SECONDS
                self._timed[relay] = None
                self._wait_for(relay, relay.server, 0)
                self._wait_for(relay, relay.client, selectors.EVENT_WRITE)
                return
            relay.to_client += octets

    def _watch(self, relay: _Relay) -> None:
        assert relay.server is not None
        client_events = selectors.EVENT_READ if len(relay.to_server) < _BUFFERED else 0
        if relay.to_client:
            client_events |= selectors.EVENT_WRITE
        server_events = selectors.EVENT_READ if len(relay.to_client) < _BUFFERED else 0
        if relay.to_server:
            server_events |= selectors.EVENT_WRITE
        self._wait_for(relay, relay.client, client_events)
        self._wait_for(relay, relay.server, server_events)

    def _wait_for(self, relay: _Relay, side: socket.socket, events: int) -> None:
        # a side that waits for nothing is not registered: it could only wake us for nothing
        if side in self._selector.get_map():
            if events:
                self._selector.modify(side, events, relay)
            else:
                self._selector.unregister(side)
        elif events:
            self._selector.register(side, events, relay)

    def _failed(self, relay: _Relay, error: str) -> None:
        _log.warn("control plane connection failed", tls=True, error=error, peer=relay.peer)
        self._close(relay)

    def _close(self, relay: _Relay) -> None:
        if relay not in self._relays:
            return
        self._relays.discard(relay)
        self._timed.pop(relay, None)
        if relay.name:
            self._ended.append(relay.name)
            if len(self._ended) > _REMEMBERED:
                self.clients.pop(self._ended.popleft(), None)
        for side in (relay.client, relay.server):
            if side is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(side)
                side.close()


def _text_of(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def server_context(cert_path: str, key_path: str, client_ca_path: str) -> ssl.SSLContext:
    """Return the TLS settings of the listener; a client CA asks every client for a certificate.

    Raises OSError or ssl.SSLError for files that cannot be read or used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_path, key_path)
    context.set_alpn_protocols(["h2"])
    if client_ca_path:
        context.load_verify_locations(client_ca_path)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
