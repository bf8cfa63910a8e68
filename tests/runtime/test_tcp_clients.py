"""TCP clients: framing, several queries a connection, limits (RFC 7766, chapter 20 section 2.3)."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator

import dns.message
import pytest

from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.stub_upstream import StubUpstream, answer

Start = Callable[..., Conduit]


def frame(qname: str, message_id: int = 1) -> bytes:
    wire = dns.message.make_query(qname, "A", id=message_id).to_wire()
    return len(wire).to_bytes(2, "big") + wire


def read_reply(sock: socket.socket) -> bytes:
    data = b""
    while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2], "big"):
        chunk = sock.recv(65536)
        if not chunk:
            raise ConnectionError(f"closed after {len(data)} octets")
        data += chunk
    return data[2:]


@pytest.fixture
def conduit(stub: StubUpstream, start_conduit: Start) -> Conduit:
    return start_conduit(configuration(stub.address, metrics=with_metrics(free_port())))


@contextlib.contextmanager
def connect(conduit: Conduit) -> Iterator[socket.socket]:
    with socket.create_connection(conduit.listener("tcp"), timeout=10) as sock:
        yield sock


def test_several_queries_on_one_connection(conduit: Conduit) -> None:
    with connect(conduit) as sock:
        for number in range(1, 6):
            sock.sendall(frame(f"n{number}.example.test.", number))
            assert read_reply(sock)[:2] == number.to_bytes(2, "big")


def test_pipelined_queries_are_answered_as_they_are_ready(
    conduit: Conduit, stub: StubUpstream
) -> None:
    stub.on("slow.example.test.", answer(delay=0.6))
    with connect(conduit) as sock:
        # both in one segment
        sock.sendall(frame("slow.example.test.", 1) + frame("fast.example.test.", 2))
        data = b""
        while data.count(b"example") < 2:
            data += sock.recv(65536)
        assert data[2:4] == b"\0\x02"
        assert b"\x04slow" in data


def test_many_pipelined_queries_are_all_answered(conduit: Conduit) -> None:
    with connect(conduit) as sock:
        sock.sendall(b"".join(frame(f"n{n}.example.test.", n) for n in range(300)))
        stream = sock.makefile("rb")
        seen = set()
        for _ in range(300):
            length = int.from_bytes(stream.read(2), "big")
            seen.add(stream.read(length)[:2])
        assert len(seen) == 300


def test_length_octets_split_over_two_segments(conduit: Conduit) -> None:
    data = frame("www.example.test.")
    with connect(conduit) as sock:
        sock.sendall(data[:1])
        time.sleep(0.05)
        sock.sendall(data[1:20])
        time.sleep(0.05)
        sock.sendall(data[20:])
        assert read_reply(sock)


def test_half_close_after_the_query_is_still_answered(conduit: Conduit) -> None:
    with connect(conduit) as sock:
        sock.sendall(frame("www.example.test."))
        sock.shutdown(socket.SHUT_WR)
        assert read_reply(sock)
        assert sock.recv(1) == b""


def test_ch20_example_18_zero_length_closes_uncounted(conduit: Conduit) -> None:
    with connect(conduit) as sock:
        sock.sendall(b"\0\0")
        assert sock.recv(1) == b""
    assert conduit.metric("conduit_parse_rejected_total") == 0
    assert conduit.metric("conduit_queries_total") == 0


def test_parse_reject_closes_and_is_counted(conduit: Conduit) -> None:
    with connect(conduit) as sock:
        sock.sendall(b"\0\3\xff\0\1")
        assert sock.recv(1) == b""
    assert conduit.metric("conduit_parse_rejected_total", reason="wire_error") == 1


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x28" + b"x" * 10])
def test_an_incomplete_message_closes_at_the_idle_limit(conduit: Conduit, data: bytes) -> None:
    with connect(conduit) as sock:
        sock.sendall(data)
        started = time.monotonic()
        assert sock.recv(1) == b""
        assert 4.0 < time.monotonic() - started < 8.0
    assert "Traceback" not in conduit.output


def test_an_octet_a_second_does_not_extend_the_limit(conduit: Conduit) -> None:
    with connect(conduit) as sock:
        started = time.monotonic()
        sock.settimeout(1.0)
        closed = False
        for octet in frame("a-rather-long-name-to-send-slowly.example.test."):
            try:
                sock.sendall(bytes([octet]))
                closed = sock.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True
            if closed:
                break
        assert closed
        # five seconds for the prefix and five for the body
        assert time.monotonic() - started < 13.0


def test_connect_and_close_leaves_no_trace(conduit: Conduit) -> None:
    for _ in range(50):
        with connect(conduit):
            pass
    assert conduit.query("www.example.test.", tcp=True).answer
    assert "ERROR" not in conduit.output


def test_the_longest_idle_connection_makes_room(conduit: Conduit) -> None:
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(conduit)) for _ in range(128)]
        # the first one is used again, so the second is now the longest idle
        socks[0].sendall(frame("www.example.test."))
        read_reply(socks[0])
        extra = stack.enter_context(connect(conduit))
        extra.sendall(frame("www.example.test."))
        assert read_reply(extra)
        socks[1].settimeout(3)
        assert socks[1].recv(1) == b""
        socks[0].sendall(frame("again.example.test."))
        assert read_reply(socks[0])


def test_idle_clients_and_few_descriptors_do_not_hurt_udp(
    stub: StubUpstream, start_conduit: Start
) -> None:
    conduit = start_conduit(configuration(stub.address), prefix=("prlimit", "--nofile=64:64"))
    with contextlib.ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(connect(conduit))
        for _ in range(20):
            assert conduit.query("www.example.test.").answer
        with open(f"/proc/{conduit.process.pid}/stat") as stat:
            before = sum(map(int, stat.read().split()[13:15]))
        time.sleep(1.0)
        with open(f"/proc/{conduit.process.pid}/stat") as stat:
            used = sum(map(int, stat.read().split()[13:15])) - before
        # no busy loop: well under half a core while accept fails
        assert used < 50
    # recovers by itself
    assert conduit.query("www.example.test.", tcp=True, timeout=10).answer


def test_tcp_threads_share_one_listening_socket(stub: StubUpstream, start_conduit: Start) -> None:
    config = configuration(stub.address)
    config["listeners"]["listeners"] = [{"address": "127.0.0.1:0", "protocol": "tcp", "threads": 3}]
    conduit = start_conduit(config)
    for _ in range(20):
        assert conduit.query("www.example.test.", tcp=True).answer
