"""Terminates TLS in front of the gRPC server, because the library hides failed handshakes.

One thread and one selector serve all connections; a slow handshake delays nobody. Each accepted
connection is relayed to the server's private socket under a name of its own, by which the server
finds out who is behind it (chapter 60 sections 2 and 4).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Final

from conduit.observe.logging import get_log

_log = get_log("conduit_control")

#: Seconds that a handshake may take.
HANDSHAKE_SECONDS: Final = 10.0
#: Most connections at once.
MAX_CONNECTIONS: Final = 2048
# octets that wait for one side before the other is not read any more
_BUFFERED: Final = 256 * 1024
_CHUNK: Final = 64 * 1024


@dataclass(frozen=True)
class Client:
    """Who is behind a relayed connection."""

    peer: str
    has_certificate: bool


class _Relay:
    """One connection: the client's TLS side and, after the handshake, the server's side."""

    __slots__ = ("client", "deadline", "name", "server", "to_client", "to_server")

    def __init__(self, client: ssl.SSLSocket) -> None:
        self.client = client
        self.server: socket.socket | None = None
        self.name = ""
        self.deadline = time.monotonic() + HANDSHAKE_SECONDS
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
        self._number = 0
        self._stop_requested = False
        #: By the name that the server sees.
        self.clients: dict[str, Client] = {}
        listener.setblocking(False)

    def run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        while not self._stop_requested:
            for key, events in self._selector.select(0.5):
                if key.data is None:
                    self._accept()
                else:
                    self._serve(key.data, key.fileobj is key.data.client, events)
            now = time.monotonic()
            for relay in [r for r in self._relays if r.server is None and now > r.deadline]:
                self._failed(relay, "handshake timed out")
        for relay in list(self._relays):
            self._close(relay)
        self._selector.close()
        self._listener.close()

    def stop(self) -> None:
        """End the thread and every connection."""
        self._stop_requested = True
        self.join(2.0)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            _log.warn("control plane connection failed", tls=True, error=error)
            # out of descriptors, most likely: let others end first
            time.sleep(0.05)
            return
        if len(self._relays) >= MAX_CONNECTIONS:
            _log.warn(
                "control plane connection failed",
                tls=True,
                error="too many connections",
                peer=_peer_of(accepted),
            )
            accepted.close()
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = self._context.wrap_socket(
            accepted, server_side=True, do_handshake_on_connect=False
        )
        relay = _Relay(client)
        self._relays.add(relay)
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
        self._number += 1
        name = f"conduit-control-{os.getpid()}-{self._number}"
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
        peer = relay.client.getpeercert(binary_form=True) is not None
        self.clients[name] = Client(_peer_of(relay.client) or "unknown", peer)
        self._selector.register(server, selectors.EVENT_READ, relay)
        # what came together with the last handshake message is in the TLS layer already
        self._serve(relay, True, selectors.EVENT_READ)

    def _serve(self, relay: _Relay, is_client: bool, events: int) -> None:
        if relay not in self._relays:
            return
        if relay.server is None:
            self._shake(relay)
            return
        try:
            self._move(relay)
        except (OSError, ValueError):
            self._close(relay)

    def _move(self, relay: _Relay) -> None:
        """Carry what can be carried in both directions; raises OSError when a side has ended."""
        server = relay.server
        assert server is not None
        ended = False
        while len(relay.to_server) < _BUFFERED:
            try:
                octets = relay.client.recv(_CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            if not octets:
                ended = True
                break
            relay.to_server += octets
        while len(relay.to_client) < _BUFFERED:
            try:
                octets = server.recv(_CHUNK)
            except BlockingIOError:
                break
            if not octets:
                ended = True
                break
            relay.to_client += octets
        if relay.to_server:
            with contextlib.suppress(BlockingIOError):
                del relay.to_server[: server.send(relay.to_server)]
        while relay.to_client:
            try:
                del relay.to_client[: relay.client.send(relay.to_client)]
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
        if ended and not relay.to_client:
            raise ConnectionError("one side has ended")
        self._watch(relay, server)

    def _watch(self, relay: _Relay, server: socket.socket) -> None:
        client_events = selectors.EVENT_READ if len(relay.to_server) < _BUFFERED else 0
        if relay.to_client:
            client_events |= selectors.EVENT_WRITE
        server_events = selectors.EVENT_READ if len(relay.to_client) < _BUFFERED else 0
        if relay.to_server:
            server_events |= selectors.EVENT_WRITE
        # both sides always wait for something: a full buffer waits to be written
        self._selector.modify(relay.client, client_events or selectors.EVENT_WRITE, relay)
        self._selector.modify(server, server_events or selectors.EVENT_WRITE, relay)

    def _failed(self, relay: _Relay, error: str) -> None:
        peer = _peer_of(relay.client)
        _log.warn("control plane connection failed", tls=True, error=error, peer=peer)
        self._close(relay)

    def _close(self, relay: _Relay) -> None:
        if relay not in self._relays:
            return
        self._relays.discard(relay)
        self.clients.pop(relay.name, None)
        for side in (relay.client, relay.server):
            if side is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(side)
                side.close()


def _peer_of(sock: socket.socket) -> str | None:
    try:
        host, port = sock.getpeername()[:2]
    except OSError:
        return None
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
