"""One connection to a collector: address, connect, handshake, writing, closing (chapter 50, 5.7).

Everything waits in short steps and looks in between whether it has been told to stop, so that no
collector can hold up the end of the process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from conduit.observe.events.frame_streams import READY, STOP, ClientHandshake, FrameStreamError

#: Longest connect and longest handshake, seconds each.
CONNECT_LIMIT: Final = 5.0
#: Longest wait between two looks at the stop flag, seconds.
STEP: Final = 0.05
#: A write without any progress for so many seconds counts as failed, while it holds up no other
#: connection of the sink and while it does.
STALL_LIMIT: Final = 30.0
STALL_LIMIT_SHARED: Final = 5.0

Stopped = Callable[[], bool]
#: A Unix socket path, or what getaddrinfo gives.
Address = str | tuple[str | int | bytes, ...]


class ConnectFailed(Exception):
    """A destination cannot be reached or its handshake failed; the text says why."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a collector listens: a Unix socket path, or a host and a port when `path` is empty."""

    path: str = ""
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp:{host}:{self.port}"


def parse_destination(text: str, base_dir: str) -> Destination | None:
    """Parse `unix:<path>` or `tcp:<host>:<port>`; None for a text that cannot be split.

    A relative path is taken from `base_dir`; the port follows the last colon.
    """
    if text.startswith("unix:"):
        path = text[5:]
        return Destination(path=os.path.join(base_dir, path)) if path else None
    if not text.startswith("tcp:"):
        return None
    host, _, port = text[4:].rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not (port.isascii() and port.isdigit()) or int(port[:9]) > 65535:
        return None
    return Destination(host=host, port=int(port))


class Connection:
    """An open stream to a collector, after the handshake."""

    __slots__ = ("_broken_frame", "_clock", "_sock", "_stopped")

    def __init__(
        self, sock: socket.socket, stopped: Stopped, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take over `sock`, which does not block."""
        self._sock = sock
        self._stopped = stopped
        self._clock = clock
        self._broken_frame = False

    def write(self, frames: Sequence[bytes], stall_limit: float = STALL_LIMIT) -> int:
        """Write data frames and return how many of them went out whole.

        Fewer than all means that the connection is no longer usable: it failed, made no progress
        for `stall_limit` seconds, or was told to stop.
        """
        rest = memoryview(b"".join(frames))
        written = 0
        progress = self._clock()
        while rest:
            try:
                sent = self._sock.send(rest)
            except (BlockingIOError, InterruptedError):
                if self._stopped() or self._clock() - progress >= stall_limit:
                    break
                _poll(self._sock, select.POLLOUT)
                continue
            except OSError:
                break
            written += sent
            rest = rest[sent:]
            progress = self._clock()
        if not rest:
            return len(frames)
        # what follows on this stream would be read as the rest of the frame
        self._broken_frame = True
        whole = 0
        for frame in frames:
            written -= len(frame)
            if written < 0:
                break
            whole += 1
        return whole

    def peer_left(self) -> bool:
        """True when the collector has closed or has ended the stream: it sends nothing else."""
        try:
            self._sock.recv(64)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        """Send STOP where the stream still allows it, without waiting for FINISH, and close."""
        with contextlib.suppress(OSError):
            if not self._broken_frame:
                self._sock.send(STOP)
        self._sock.close()


def open_connection(
    destination: Destination,
    stopped: Stopped,
    connect_limit: float = CONNECT_LIMIT,
    handshake_limit: float = CONNECT_LIMIT,
) -> Connection:
    """Connect to a collector and perform the handshake; the limits are seconds.

    Raises ConnectFailed, also when `stopped` becomes true meanwhile.
    """
    sock = _connect(destination, stopped, time.monotonic() + connect_limit)
    try:
        _handshake(sock, stopped, time.monotonic() + handshake_limit)
    except (OSError, FrameStreamError) as error:
        sock.close()
        raise ConnectFailed(f"{destination}: {error}") from error
    except BaseException:
        sock.close()
        raise
    return Connection(sock, stopped)


def _connect(destination: Destination, stopped: Stopped, deadline: float) -> socket.socket:
    failure: OSError | None = None
    try:
        for family, address in _addresses(destination):
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                code = sock.connect_ex(address)
                if code == errno.EINPROGRESS:
                    _await(sock, select.POLLOUT, stopped, deadline)
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, os.strerror(code))
                if family != socket.AF_UNIX:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                return sock
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
    except (OSError, UnicodeError, ValueError) as error:
        # a host without an address, a path that is too long or holds a zero octet
        raise ConnectFailed(f"{destination}: {error}") from error
    raise ConnectFailed(f"{destination}: {failure}")


def _addresses(
    destination: Destination,
) -> Iterator[tuple[int, Address]]:
    if destination.path:
        yield socket.AF_UNIX, destination.path
        return
    for family, _, _, _, address in socket.getaddrinfo(
        destination.host, destination.port, type=socket.SOCK_STREAM
    ):
        yield family, address


def _handshake(sock: socket.socket, stopped: Stopped, deadline: float) -> None:
    # 42 octets always fit into the buffer of a new connection
    sock.send(READY)
    handshake = ClientHandshake()
    while True:
        _await(sock, select.POLLIN, stopped, deadline)
        try:
            octets = sock.recv(1024)
        except (BlockingIOError, InterruptedError):
            continue
        start = handshake.feed(octets)
        if start is not None:
            sock.send(start)
            return


def _await(sock: socket.socket, event: int, stopped: Stopped, deadline: float) -> None:
    while not _poll(sock, event):
        if stopped():
            raise ConnectFailed("stopped")
        if time.monotonic() >= deadline:
            raise TimeoutError("no answer in time")


def _poll(sock: socket.socket, event: int) -> bool:
    poll = select.poll()
    poll.register(sock, event)
    return bool(poll.poll(STEP * 1000))
