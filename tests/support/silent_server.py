"""A server that is there and never answers: a bound UDP socket and a listening TCP socket.

A closed port would answer at once with an ICMP error or a reset, which is another fault.
"""

from __future__ import annotations

import socket

from tests.support.ports import free_port


class SilentServer:
    """Holds a port of `host`, takes every datagram and connection, sends nothing."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        """Raises RuntimeError when no port is free."""
        self.host = host
        self.port = free_port(host)
        self.address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._udp = socket.socket(family, socket.SOCK_DGRAM)
        self._tcp = socket.socket(family, socket.SOCK_STREAM)
        self._udp.bind((host, self.port))
        self._tcp.bind((host, self.port))
        # the kernel completes handshakes up to the backlog; nobody accepts them
        self._tcp.listen(128)

    def datagrams(self) -> int:
        """Take what has come in since the last call and return how many datagrams it was."""
        count = 0
        self._udp.setblocking(False)
        try:
            while True:
                self._udp.recv(65535)
                count += 1
        except BlockingIOError:
            return count

    def stop(self) -> None:
        """Give the port back."""
        self._udp.close()
        self._tcp.close()

    def __enter__(self) -> SilentServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
