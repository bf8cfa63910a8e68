"""UDP sockets towards backends: unconnected, on random ports that change (RFC 5452 section 9.2).

Unconnected sockets keep an ICMP "port unreachable" from shortening a wait. The receive wait is
`SO_RCVTIMEO`, which costs no extra system call where Python's own timeout would cost a `poll`.
"""

from __future__ import annotations

import os
import socket
import struct

_pack_timeval = struct.Struct("@ll").pack
# a socket serves this many exchanges at most, then its port changes
_MIN_USES = 24


class UpstreamUdpSocket:
    """One bound UDP socket of one worker, with its receive timeout in seconds."""

    __slots__ = ("_timeout", "sock", "uses_left")

    def __init__(self, family: int, source: str | None) -> None:
        """Open the socket; raises OSError when `source` cannot be bound."""
        self.sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            # port 0: the kernel picks a random free one
            self.sock.bind((source or ("::" if family == socket.AF_INET6 else "0.0.0.0"), 0))
        except OSError:
            self.sock.close()
            raise
        self._timeout = -1.0
        self.uses_left = _MIN_USES + os.urandom(1)[0] % _MIN_USES

    def set_timeout(self, seconds: float) -> None:
        """Bound each following receive to `seconds` (> 0); cheap when unchanged."""
        if seconds != self._timeout:
            whole = int(seconds)
            micros = (
                max(1, int((seconds - whole) * 1_000_000))
                if whole == 0
                else int((seconds - whole) * 1_000_000)
            )
            self.sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_RCVTIMEO, _pack_timeval(whole, micros)
            )
            self._timeout = seconds

    def close(self) -> None:
        """Close the socket; late replies to it are lost, as they should be."""
        self.sock.close()


class UdpSocketSet:
    """The UDP sockets of one worker, by family and source address, opened on first use."""

    __slots__ = ("_sockets",)

    def __init__(self) -> None:
        self._sockets: dict[tuple[int, str | None], UpstreamUdpSocket] = {}

    def get(self, family: int, source: str | None) -> UpstreamUdpSocket:
        """Return the socket for `source`; raises OSError when none can be opened.

        A source that cannot be bound now (it arrived by a reload) falls back to the unbound
        socket, as chapter 20 section 12.6 says.
        """
        key = (family, source)
        found = self._sockets.get(key)
        if found is not None:
            found.uses_left -= 1
            if found.uses_left > 0:
                return found
            self.discard(family, source)
        try:
            found = UpstreamUdpSocket(family, source)
        except OSError:
            if source is None:
                raise
            return self.get(family, None)
        self._sockets[key] = found
        return found

    def discard(self, family: int, source: str | None) -> None:
        """Close the socket for `source`; the next `get` opens one on another port."""
        found = self._sockets.pop((family, source), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Close all sockets."""
        while self._sockets:
            self._sockets.popitem()[1].close()
