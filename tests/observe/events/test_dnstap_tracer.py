"""The tracer as a process: formats, filters, one-way clients, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.message
import pytest
import yaml

from conduit.observe.events.dnstap import QUERY, RESPONSE, ClientMessage, encode_frame
from conduit.observe.events.frame_streams import READY, START, STOP, encode_data
from tests.support.child import Child

TRACER = [sys.executable, "-m", "conduit.cli.dnstap_tracer"]


def messages(qname: str) -> tuple[bytes, bytes]:
    query = dns.message.make_query(qname, "A", id=7, use_edns=0)
    response = dns.message.make_response(query)
    response.answer.append(dns.rrset.from_text(qname, 60, "IN", "A", "192.0.2.1"))
    return query.to_wire(), response.to_wire()


def frames(qname: str = "www.example.test.") -> bytes:
    """The data frames of one query and one response."""
    query, response = messages(qname)
    return b"".join(
        encode_data(
            encode_frame(
                b"\x0a\x03tap",
                ClientMessage(kind, 1_700_000_000_000_000_001, "2001:db8::7", 99, False, wire),
                b'{"txn_id":1}',
            )
        )
        for kind, wire in ((QUERY, query), (RESPONSE, response))
    )


Start = Callable[..., tuple[Child, socket.socket]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start tracers, connect to them, and end them with the test."""
    children: list[Child] = []
    clients: list[socket.socket] = []

    def build(*options: str, tcp: bool = False) -> tuple[Child, socket.socket]:
        path = tmp_path / "tap.sock"
        place = ["-a", "127.0.0.1:0"] if tcp else ["-u", str(path)]
        child = Child([*TRACER, *place, *options])
        children.append(child)
        child.wait_until(lambda: "listening on" in child.output, "the tracer")
        where = child.lines[0].removeprefix("listening on ")
        client: socket.socket
        if tcp:
            client = socket.create_connection(("127.0.0.1", int(where.rpartition(":")[2])), 10)
        else:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.settimeout(10)
            client.connect(str(path))
        clients.append(client)
        return child, client

    yield build
    for client in clients:
        client.close()
    for child in children:
        child.stop()


def shown(child: Child, count: int) -> list[str]:
    child.wait_until(lambda: len(child.lines) > count, f"{count} lines")
    return child.lines[1:]


def test_log_lines_come_at_once(start: Start) -> None:
    child, client = start()
    client.sendall(READY)
    assert client.recv(100)[8:12] == b"\x00\x00\x00\x01"
    client.sendall(START + frames())
    # the stream is still open
    query, response = shown(child, 2)
    start_text = "2023-11-14T22:13:20.000000001Z CLIENT_"
    assert query.startswith(f"{start_text}QUERY udp [2001:db8::7]:99 identity=tap id=7 ")
    assert "question=www.example.test. IN A" in query
    assert query.endswith('extra={"txn_id":1}')
    assert response.startswith(f"{start_text}RESPONSE")
    assert "rcode=NOERROR" in response
    assert 'answer=["www.example.test. 60 IN A 192.0.2.1"]' in response
    client.sendall(STOP)
    assert client.recv(100)[8:12] == b"\x00\x00\x00\x05"


def test_json_over_tcp(start: Start) -> None:
    child, client = start("-f", "json", tcp=True)
    client.sendall(READY + START + frames())
    query, response = map(json.loads, shown(child, 2))
    assert query["type"] == "CLIENT_QUERY"
    assert query["extra"] == {"txn_id": 1}
    assert query["query_address"] == "2001:db8::7"
    assert query["query_message"]["question"] == ["www.example.test. IN A"]
    assert query["query_message"]["edns"]["payload"] == 1232
    assert "response_message" not in query
    assert response["response_message"]["answer"] == ["www.example.test. 60 IN A 192.0.2.1"]
    assert response["response_time"] == "2023-11-14T22:13:20.000000001Z"


def test_yaml_documents(start: Start) -> None:
    child, client = start("-f", "yaml", "--type", "query")
    client.sendall(READY + START + frames())
    child.wait_until(lambda: "query_message" in child.output, "the document")
    child.wait_until(lambda: "edns" in child.output and "options" in child.output, "its end")
    (document,) = yaml.safe_load_all("\n".join(child.lines[1:]))
    assert document["identity"] == "tap"


def test_filters(start: Start) -> None:
    child, client = start("--qname", "Example.TEST", "--type", "response")
    client.sendall(
        READY + START + frames("badexample.test.") + frames("example.test.") + frames("a.test.")
        + frames("x.example.test.")
    )  # fmt: skip
    lines = shown(child, 2)
    assert len(lines) == 2
    assert "question=example.test. IN A" in lines[0]
    assert "question=x.example.test. IN A" in lines[1]


def test_one_way_clients(start: Start) -> None:
    child, client = start("--unidirectional")
    client.sendall(START + frames() + STOP)
    assert len(shown(child, 2)) == 2
    assert client.recv(100) == b""


def test_one_way_client_is_refused_otherwise(start: Start) -> None:
    child, client = start()
    client.sendall(START)
    assert client.recv(100) == b""
    assert "START is out of order" in shown(child, 1)[0]


def test_undecodable_frames_do_not_end_it(start: Start) -> None:
    child, client = start()
    bad_message = ClientMessage(QUERY, 0, "192.0.2.1", 1, True, b"no DNS")
    client.sendall(
        READY
        + START
        + encode_data(b"nonsense")
        + encode_data(encode_frame(b"", bad_message, b"\xff"))
        + frames()
    )
    lines = shown(child, 4)
    assert "undecodable frame of 8 octets" in lines[0]
    assert "undecodable=" in lines[1]
    assert f"octets={b'no DNS'.hex()}" in lines[1]
    assert "CLIENT_QUERY" in lines[2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_clean_end(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    child, _ = start()
    child.process.send_signal(number)
    assert child.process.wait(10) == 0
    assert not (tmp_path / "tap.sock").exists()
    assert "Traceback" not in child.output


def test_stale_socket_is_replaced_and_a_used_one_is_not(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "tap.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(path))
    start()
    second = subprocess.run(
        [*TRACER, "-u", str(path)], capture_output=True, text=True, timeout=20, check=False
    )
    assert second.returncode == 1
    assert second.stderr.startswith("Error: cannot listen on")
    plain = tmp_path / "file"
    plain.write_text("kept")
    third = subprocess.run(
        [*TRACER, "-u", str(plain)], capture_output=True, timeout=20, check=False
    )
    assert third.returncode == 1
    assert plain.read_text() == "kept"
