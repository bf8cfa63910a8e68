"""One collector connection: addresses, handshake failures, limits, and writes that stall."""

from __future__ import annotations

import socket
import threading

import pytest

from conduit.observe.events.collector import (
    ConnectFailed,
    Connection,
    Destination,
    open_connection,
    parse_destination,
)


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_handshake_failure_is_a_connect_failure(reply: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(42)
                client.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        destination = Destination(host="127.0.0.1", port=server.getsockname()[1])
        with pytest.raises(ConnectFailed):
            open_connection(destination, lambda: False)
        thread.join()


def test_connect_and_handshake_are_limited() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        destination = Destination(host="127.0.0.1", port=silent.getsockname()[1])
        with pytest.raises(ConnectFailed, match="no answer in time"):
            open_connection(destination, lambda: False, handshake_limit=0.05)


def test_write_that_stalls_ends_and_counts_whole_frames() -> None:
    here, there = socket.socketpair()
    with there:
        here.setblocking(False)
        times = iter(range(1_000_000))
        connection = Connection(here, lambda: False, lambda: float(next(times)))
        frame = b"x" * 50_000
        count = connection.write([frame] * 100, stall_limit=2)
        assert 0 < count < 100
        connection.close()
        received = 0
        while octets := there.recv(65536):
            received += len(octets)
        # the broken frame is followed by nothing
        assert count * len(frame) <= received < (count + 1) * len(frame)


@pytest.mark.parametrize(
    ("text", "destination"),
    [
        ("unix:/run/tap.sock", Destination(path="/run/tap.sock")),
        ("unix:tap.sock", Destination(path="/etc/conduit/tap.sock")),
        ("tcp:localhost:6000", Destination(host="localhost", port=6000)),
        ("tcp:[::1]:6000", Destination(host="::1", port=6000)),
        ("tcp::6000", None),
        ("tcp:host", None),
        ("tcp:host:65536", None),
        ("tcp:host:x", None),
        ("unix:", None),
        ("udp:host:1", None),
    ],
)
def test_destinations(text: str, destination: Destination | None) -> None:
    assert parse_destination(text, "/etc/conduit") == destination


def test_unreachable_destinations_fail() -> None:
    for destination in (
        Destination(path="/nonexistent/tap.sock"),
        Destination(path="x" * 300),
        Destination(path="a\0b"),
        Destination(host="host..invalid", port=1),
    ):
        with pytest.raises(ConnectFailed):
            open_connection(destination, lambda: False)
