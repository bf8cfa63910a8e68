"""Socket and source addresses as the configuration writes them (chapter 10 section 4.3).

Parsing is strict: literals only, no host names, no leading zeros, no default port. An IPv6 literal
in brackets may carry a zone (`[fe80::1%eth0]:53`, RFC 4007 section 11), which must name an existing
interface.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Final

_OCTET: Final = r"(?:0|[1-9][0-9]{0,2})"
_IPV4: Final = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_V4_SOCKET: Final = re.compile(r"([^:\[\]]*):([0-9]{1,5})", re.ASCII)
_V6_SOCKET: Final = re.compile(r"\[([^\[\]%]*)(?:%([^\[\]%]*))?\]:([0-9]{1,5})", re.ASCII)
_SHAPE: Final = "must be a.b.c.d:port or [v6]:port"


@dataclass(frozen=True)
class SocketAddress:
    """An IP address with a port; `host` is canonical text, `scope` the IPv6 zone as written."""

    __slots__ = ("host", "port", "scope", "scope_id")

    host: str
    port: int
    scope: str | None
    scope_id: int

    @property
    def family(self) -> socket.AddressFamily:
        """AF_INET or AF_INET6."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def sockaddr(self) -> tuple[str, int] | tuple[str, int, int, int]:
        """The address as the socket module takes it, with the resolved scope id for IPv6."""
        if ":" in self.host:
            return (self.host, self.port, 0, self.scope_id)
        return (self.host, self.port)

    @property
    def is_wildcard(self) -> bool:
        """True for 0.0.0.0 and ::."""
        return self.host in ("0.0.0.0", "::")

    def __str__(self) -> str:
        if ":" not in self.host:
            return f"{self.host}:{self.port}"
        zone = f"%{self.scope}" if self.scope is not None else ""
        return f"[{self.host}{zone}]:{self.port}"


def parse_socket_address(text: str) -> SocketAddress:
    """Parse `a.b.c.d:port` or `[v6]:port`, with an optional zone in the brackets.

    Raises ValueError with what is wrong, also for a zone whose interface does not exist.
    """
    match = _V6_SOCKET.fullmatch(text)
    if match is not None:
        host = _canonical_v6(match.group(1))
        if host is None:
            raise ValueError(f"'{match.group(1)}' is not a valid IPv6 address")
        scope = match.group(2)
        scope_id = _scope_id(scope) if scope is not None else 0
        return SocketAddress(host, _port(match.group(3)), scope, scope_id)
    match = _V4_SOCKET.fullmatch(text)
    if match is None:
        raise ValueError(_SHAPE)
    if not _is_ipv4(match.group(1)):
        raise ValueError(f"'{match.group(1)}' is not a valid IPv4 address; {_SHAPE}")
    return SocketAddress(match.group(1), _port(match.group(2)), None, 0)


def parse_source_address(text: str, family: int) -> str:
    """Return the canonical text of a bare literal of `family` (AF_INET or AF_INET6).

    No port, zone, prefix length or surrounding space is accepted; raises ValueError.
    """
    if family == socket.AF_INET:
        if not _is_ipv4(text):
            raise ValueError(f"'{text}' is not a valid IPv4 address")
        return text
    host = _canonical_v6(text)
    if host is None:
        raise ValueError(f"'{text}' is not a valid IPv6 address")
    return host


def _is_ipv4(text: str) -> bool:
    return _IPV4.fullmatch(text) is not None and all(int(o) <= 255 for o in text.split("."))


def _canonical_v6(text: str) -> str | None:
    if len(text) > 45 or not text.isascii() or "%" in text:
        return None
    try:
        return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, text))
    except (OSError, ValueError):
        return None


def _port(text: str) -> int:
    port = int(text)
    if port > 65535:
        raise ValueError(f"port {port} is above 65535")
    return port


def _scope_id(zone: str) -> int:
    try:
        if zone.isascii() and zone.isdigit() and len(zone) <= 10:
            scope_id = int(zone)
            socket.if_indextoname(scope_id)
            return scope_id
        return socket.if_nametoindex(zone)
    except (OSError, ValueError, OverflowError):
        raise ValueError(f"zone '%{zone}' names no network interface of this host") from None
