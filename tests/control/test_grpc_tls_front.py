"""The TLS front alone, before a server that does as the test says."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conduit.control import tls_front
from conduit.control.tls_front import Client, TlsFront, server_context
from tests.control.conftest import Authority

MUCH = 4_000_000


class Fronted:
    """A front, and the unix listener behind it."""

    def __init__(self, folder: Path, authority: Authority) -> None:
        certificate, key = authority.issue("server")
        self.behind = socket.socket(socket.AF_UNIX)
        self.behind.bind(str(folder / "b.sock"))
        self.behind.listen(128)
        self.behind.settimeout(5)
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        self.front = TlsFront(
            listener, server_context(str(certificate), str(key), ""), str(folder / "b.sock")
        )
        self.context = ssl.create_default_context(cafile=str(authority.path))
        self.context.set_alpn_protocols(["h2"])

    def connect(self) -> tuple[ssl.SSLSocket, socket.socket, str]:
        """A client, its other end behind the front, and the name of that."""
        raw = socket.create_connection(self.address, timeout=5)
        client = self.context.wrap_socket(raw, server_hostname="localhost")
        server, name = self.behind.accept()
        server.settimeout(5)
        return client, server, name.decode().lstrip("\0")

    def client_of(self, name: str) -> Client | None:
        return self.front.clients.get(name)


@pytest.fixture
def fronted(tmp_path: Path, authority: Authority) -> Iterator[Fronted]:
    made = Fronted(tmp_path, authority)
    made.front.start()
    yield made
    made.front.stop()
    made.behind.close()


def processor_seconds(seconds: float) -> float:
    """What this process uses while the test sleeps."""
    before = time.process_time()
    time.sleep(seconds)
    return time.process_time() - before


def until(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


def fill(sock: socket.socket) -> int:
    """Send until the other side takes no more."""
    sock.settimeout(0.3)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 20 * MUCH:
            sent += sock.send(b"x" * 65536)
    assert sent < 20 * MUCH
    return sent


@pytest.mark.parametrize("ends", ["nobody", "client", "server"])
def test_a_client_that_does_not_read_costs_no_processor_time(fronted: Fronted, ends: str) -> None:
    client, server, _ = fronted.connect()
    fill(server)
    if ends == "client":
        socket.socket.shutdown(client, socket.SHUT_WR)
    elif ends == "server":
        server.shutdown(socket.SHUT_WR)
    assert processor_seconds(1.0) < 0.2
    client.close()
    server.close()


def test_a_server_that_does_not_read_costs_no_processor_time(fronted: Fronted) -> None:
    client, server, _ = fronted.connect()
    fill(client)
    assert processor_seconds(1.0) < 0.2
    client.close()
    server.close()


def test_the_last_words_of_the_server_arrive(fronted: Fronted) -> None:
    client, server, _ = fronted.connect()
    sent = fill(server)
    server.close()
    received = 0
    while octets := client.recv(65536):
        received += len(octets)
    assert received == sent
    client.close()
    assert until(lambda: not fronted.front._relays)


def test_much_is_carried_in_both_directions(fronted: Fronted) -> None:
    client, server, _ = fronted.connect()
    text = bytes(range(256)) * 40
    for one, other in ((client, server), (server, client)):
        for _ in range(100):
            one.sendall(text)
            received = b""
            while len(received) < len(text):
                received += other.recv(65536)
            assert received == text
    client.close()
    server.close()


def test_a_connection_that_has_ended_is_still_known(
    fronted: Fronted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_front, "_REMEMBERED", 3)
    names = []
    for _ in range(6):
        client, server, name = fronted.connect()
        names.append(name)
        peer = "{}:{}".format(*client.getsockname())
        client.close()
        assert server.recv(1) == b""
        server.close()
        assert fronted.client_of(name) == Client(peer, False)
    assert until(lambda: len(fronted.front.clients) <= 4)
    assert fronted.client_of(names[0]) is None
    assert len(set(names)) == 6


def test_a_new_connection_takes_the_place_of_the_most_idle(
    fronted: Fronted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_front, "MAX_CONNECTIONS", 3)
    first, idle, third = (fronted.connect() for _ in range(3))
    for client, server, _ in (first, third):
        client.sendall(b"1")
        assert server.recv(1) == b"1"
    client, server, _ = fronted.connect()
    client.sendall(b"2")
    assert server.recv(1) == b"2"
    assert idle[1].recv(1) == b""
    first[0].sendall(b"3")
    assert first[1].recv(1) == b"3"
    for ends in (first, idle, third, (client, server)):
        ends[0].close()
        ends[1].close()


def test_stuck_handshakes_end_in_time_and_go_first(
    fronted: Fronted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_front, "MAX_CONNECTIONS", 2)
    client, server, _ = fronted.connect()
    stuck = socket.create_connection(fronted.address, timeout=5)
    assert until(lambda: len(fronted.front._relays) == 2)
    other, other_server, _ = fronted.connect()
    assert stuck.recv(1) == b""
    monkeypatch.setattr(tls_front, "HANDSHAKE_SECONDS", 0.2)
    monkeypatch.setattr(tls_front, "MAX_CONNECTIONS", 9)
    late = socket.create_connection(fronted.address, timeout=5)
    assert late.recv(1) == b""
    client.sendall(b"1")
    assert server.recv(1) == b"1"
    for sock in (client, server, stuck, other, other_server, late):
        sock.close()


def test_no_new_connection_after_accepting_has_ended(fronted: Fronted) -> None:
    client, server, _ = fronted.connect()
    fronted.front.stop_accepting()
    with pytest.raises(OSError):
        socket.create_connection(fronted.address, timeout=2)
    client.sendall(b"1")
    assert server.recv(1) == b"1"
    client.close()
    server.close()


def test_connections_that_are_reset_before_they_are_accepted(
    tmp_path: Path, authority: Authority
) -> None:
    made = Fronted(tmp_path, authority)
    for _ in range(20):
        with socket.create_connection(made.address, timeout=5) as reset:
            reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.front.start()
    client, server, _ = made.connect()
    client.sendall(b"1")
    assert server.recv(1) == b"1"
    client.close()
    server.close()
    made.front.stop()
    made.behind.close()
