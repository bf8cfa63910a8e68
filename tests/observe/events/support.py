"""A collector in the test's own process, transactions made by hand, and one-line configurations."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conduit.config import Backend as BackendConfig
from conduit.config import Events
from conduit.observe.events.dnstap_decode import Frame, decode_frame
from conduit.observe.events.frame_streams import ServerStream
from conduit.transaction import Transaction
from conduit.upstream.backend import compile_backend
from tests.config.support import extend
from tests.support.scripted import FakeListener, make_query

#: How long a test waits for something that must happen, seconds.
PATIENCE = 10.0


def events_of(text: str) -> Events:
    """Load the `events` block given as flow YAML."""
    return extend(f"events: {text}\n").events


def make_txn(
    number: int = 1,
    *,
    qname: str = "www.example.test.",
    client: str = "192.0.2.7",
    port: int = 4321,
    protocol: str = "udp",
    **fields: Any,
) -> Transaction:
    """Return a transaction as Request rules leave it; `fields` set attributes."""
    snapshot: Any = None
    txn = Transaction(
        number,
        number,
        make_query(qname),
        snapshot,
        FakeListener(protocol),
        client,
        None,
        1000.0,
        client_port=port,
    )
    for key, value in fields.items():
        setattr(txn, key, value)
    return txn


def backend(name: str | None = "r1", address: str = "10.0.0.1:53") -> Any:
    return compile_backend("default", BackendConfig(address=address, name=name))


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll until `condition` holds; fails after a generous time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        threading.Event().wait(0.005)


class Collector:
    """Listens on a Unix socket or on TCP (`path` None) and keeps the frames that come.

    With `reads` false it performs the handshake and then never reads again.
    """

    def __init__(self, path: Path | None = None, port: int = 0, reads: bool = True) -> None:
        if path is not None:
            path.unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(path))
            self.destination = f"unix:{path}"
        else:
            self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(("127.0.0.1", port))
            self.destination = f"tcp:127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.listen()
        self._reads = reads
        self._clients: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.frames: list[Frame] = []
        self.streams: list[ServerStream] = []
        self.faults: list[BaseException] = []
        self._spawn(self._accept)

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._clients.append(client)
            self._spawn(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        stream = ServerStream()
        self.streams.append(stream)
        try:
            while octets := client.recv(65536):
                self.frames.extend(decode_frame(payload) for payload in stream.feed(octets))
                client.sendall(stream.replies())
                if not self._reads:
                    # READY has been answered; START and all else stays in the socket
                    return
        except OSError:
            return
        except BaseException as error:
            self.faults.append(error)

    def wait_for_frames(self, count: int) -> None:
        """Wait until exactly `count` frames have come."""
        wait_for(lambda: len(self.frames) == count, f"{count} frames")

    def close(self) -> None:
        """Close everything, as a collector that is killed."""
        for sock in (self._listener, *self._clients):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not self.faults

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
