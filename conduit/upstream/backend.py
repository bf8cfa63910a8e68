"""A backend as the query path sees it: parsed address, label and weight, fixed in a snapshot."""

from __future__ import annotations

import socket

from conduit.config import Backend as BackendConfig
from conduit.config.address import SocketAddress, parse_socket_address


class Backend:
    """One upstream server of one pool.

    `key` is the canonical address text; the tried list, the outstanding table and the TCP
    connection pool identify a backend by it, across pools (chapter 20 section 1.5). `label` is the
    configured name, else the address as written, and is used in metrics, logs and events.
    """

    __slots__ = ("address", "family", "key", "label", "pool", "sockaddr", "weight")

    def __init__(self, pool: str, address: SocketAddress, label: str, weight: int) -> None:
        self.pool = pool
        self.address = address
        self.family: int = address.family
        self.sockaddr = address.sockaddr
        self.key = str(address)
        self.label = label
        self.weight = weight

    @property
    def is_ipv6(self) -> bool:
        """True for an IPv6 backend: it uses the v6 source lists and overrides only."""
        return self.family == socket.AF_INET6

    def __repr__(self) -> str:
        return f"Backend({self.pool}/{self.label})"


def compile_backend(pool: str, config: BackendConfig) -> Backend:
    """Return the backend of a validated configuration entry.

    Raises ValueError when the address does not parse.
    """
    return Backend(
        pool, parse_socket_address(config.address), config.label, config.effective_weight
    )
