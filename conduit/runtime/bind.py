"""Binding the sockets of the configured listeners (chapter 20 section 2.1 and 2.4)."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from conduit.config import Listener, Listeners
from conduit.config.address import SocketAddress, parse_socket_address
from conduit.runtime.tcp_listener import BACKLOG


class BindError(Exception):
    """A listener's socket could not be set up; the text names protocol, address and cause."""


@dataclass(frozen=True)
class BoundListener:
    """The sockets of one configured listener: one a thread for UDP, one in all for TCP."""

    config: Listener
    address: SocketAddress
    threads: int
    sockets: tuple[socket.socket, ...]

    @property
    def bound_text(self) -> str:
        """The address as bound; tells the real port where the configured one is 0."""
        host, port = self.sockets[0].getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind_all(block: Listeners) -> list[BoundListener]:
    """Bind every listener in list order; on an error close what was bound and raise BindError."""
    bound: list[BoundListener] = []
    try:
        for entry in block.listeners:
            bound.append(_bind(entry, block))
    except BaseException:
        for listener in bound:
            for sock in listener.sockets:
                sock.close()
        raise
    return bound


def _bind(entry: Listener, block: Listeners) -> BoundListener:
    protocol = "tcp" if entry.is_tcp else "udp"
    where = f"cannot listen on {protocol} {entry.address}"
    try:
        address = parse_socket_address(entry.address)
    except ValueError as error:
        raise BindError(f"{where}: {error}") from error
    threads = max(1, entry.resolved_threads(block))
    v6only = _needs_v6only(entry, address, block.listeners)
    sockets: list[socket.socket] = []
    try:
        sockaddr = address.sockaddr
        for _ in range(1 if entry.is_tcp else threads):
            sock = _open(address, entry, block, v6only, sockaddr)
            sockets.append(sock)
            if address.port == 0:
                # all sockets of one entry share the port that the first one got
                sockaddr = sock.getsockname()
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise BindError(f"{where}: {_advice(error)}") from error
    return BoundListener(entry, address, threads, tuple(sockets))


def _open(
    address: SocketAddress,
    entry: Listener,
    block: Listeners,
    v6only: bool,
    sockaddr: tuple[str, int] | tuple[str, int, int, int],
) -> socket.socket:
    kind = socket.SOCK_STREAM if entry.is_tcp else socket.SOCK_DGRAM
    sock = socket.socket(address.family, kind | socket.SOCK_CLOEXEC)
    try:
        if v6only:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if entry.is_tcp:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            if entry.resolved_reuse_port(block):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            size = entry.resolved_rcvbuf(block)
            if size > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, min(size, 2**31 - 1))
        sock.bind(sockaddr)
        if entry.is_tcp:
            sock.setblocking(False)
            sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _needs_v6only(entry: Listener, address: SocketAddress, entries: Sequence[Listener]) -> bool:
    """True for an IPv6 wildcard entry whose port an IPv4 entry of the same protocol also uses."""
    if address.family != socket.AF_INET6 or not address.is_wildcard:
        return False
    for other in entries:
        if other is entry or other.is_tcp != entry.is_tcp:
            continue
        try:
            other_address = parse_socket_address(other.address)
        except ValueError:
            continue
        if other_address.family == socket.AF_INET and other_address.port == address.port:
            return True
    return False


def _advice(error: OSError) -> str:
    text = os.strerror(error.errno) if error.errno else str(error)
    if isinstance(error, PermissionError):
        return f"{text} (ports below 1024 need CAP_NET_BIND_SERVICE)"
    if error.errno == 98:
        return f"{text} (another process, or another entry of this file, has this address)"
    return text
