"""Free loopback ports for servers that must be told a number before they start."""

from __future__ import annotations

import random
import socket

_random = random.Random()


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that is free for UDP and TCP on `host`, below the ephemeral range."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(200):
        port = _random.randrange(10_000, 30_000)
        try:
            with (
                socket.socket(family, socket.SOCK_DGRAM) as udp,
                socket.socket(family, socket.SOCK_STREAM) as tcp,
            ):
                udp.bind((host, port))
                tcp.bind((host, port))
            return port
        except OSError:
            continue
    raise RuntimeError(f"no free port on {host}")
