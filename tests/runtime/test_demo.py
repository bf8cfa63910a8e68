"""The demo upstream: what it answers, how it truncates, and that nobody can knock it over."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import dns.edns
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import pytest

from conduit.runtime.demo import DemoUpstream
from tests.support.client import ask
from tests.support.ports import free_port


@pytest.fixture
def demo() -> Iterator[DemoUpstream]:
    upstream = DemoUpstream(f"127.0.0.1:{free_port()}")
    upstream.start()
    yield upstream
    upstream.stop()


def endpoint(demo: DemoUpstream) -> tuple[str, int]:
    host, _, port = demo.address.rpartition(":")
    return host.strip("[]"), int(port)


def direct(query: dns.message.Message, *, tcp: bool = False) -> dns.message.Message:
    """The answer without a socket."""
    reply = DemoUpstream("127.0.0.1:0").answer(query.to_wire(), tcp=tcp)
    assert reply is not None
    return dns.message.from_wire(reply)


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
@pytest.mark.parametrize(
    ("qname", "qtype", "expected"),
    [
        ("www.demo.test.", "A", {"192.0.2.1"}),
        ("WWW.Demo.Test.", "AAAA", {"2001:db8::1"}),
        ("txt.demo.test.", "TXT", {'"DNS Conduit is answering"'}),
        ("demo.test.", "NS", {"ns1.demo.test."}),
        ("alias.demo.test.", "A", {"www.demo.test.", "192.0.2.1"}),
        ("alias.demo.test.", "CNAME", {"www.demo.test."}),
        ("alias.demo.test.", "ANY", {"www.demo.test."}),
        ("www.demo.test.", "ANY", {"192.0.2.1", "2001:db8::1"}),
    ],
)
def test_answers_with_authority(
    demo: DemoUpstream, tcp: bool, qname: str, qtype: str, expected: set[str]
) -> None:
    reply = ask(*endpoint(demo), qname, qtype, tcp=tcp)
    assert reply.rcode() == dns.rcode.NOERROR
    assert reply.flags & dns.flags.AA
    assert {rdata.to_text() for rrset in reply.answer for rdata in rrset} == expected
    assert reply.edns == -1


def test_the_apex_has_a_soa() -> None:
    reply = direct(dns.message.make_query("demo.test.", "SOA"))
    (soa,) = reply.answer
    assert soa.rdtype == dns.rdatatype.SOA
    assert soa.ttl == 300


@pytest.mark.parametrize(
    ("qname", "qtype", "rcode"),
    [
        ("missing.demo.test.", "A", dns.rcode.NXDOMAIN),
        ("missing.demo.test.", "ANY", dns.rcode.NXDOMAIN),
        ("www.demo.test.", "MX", dns.rcode.NOERROR),
    ],
)
def test_negative_answers_carry_the_soa_with_its_minimum_as_ttl(
    qname: str, qtype: str, rcode: dns.rcode.Rcode
) -> None:
    reply = direct(dns.message.make_query(qname, qtype))
    assert reply.rcode() == rcode
    assert not reply.answer
    (soa,) = reply.authority
    assert soa.rdtype == dns.rdatatype.SOA
    assert soa.ttl == soa[0].minimum == 60


@pytest.mark.parametrize("qname", ["www.example.test.", "test.", ".", "notdemo.test."])
def test_names_outside_the_zone_are_refused(qname: str) -> None:
    reply = direct(dns.message.make_query(qname, "A"))
    assert reply.rcode() == dns.rcode.REFUSED
    assert not reply.flags & dns.flags.AA
    assert not reply.answer
    assert not reply.authority


def test_another_class_is_refused() -> None:
    query = dns.message.make_query("www.demo.test.", "A", rdclass=dns.rdataclass.CH)
    assert direct(query).rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize(("payload", "limit"), [(None, 512), (512, 512), (100, 512), (1232, 1232)])
def test_a_large_set_is_truncated_over_udp(
    demo: DemoUpstream, payload: int | None, limit: int
) -> None:
    edns = False if payload is None else 0
    query = dns.message.make_query("big.demo.test.", "TXT", use_edns=edns, payload=payload or 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.sendto(query.to_wire(), endpoint(demo))
        wire = client.recv(65535)
    reply = dns.message.from_wire(wire)
    assert reply.flags & dns.flags.TC
    assert len(wire) <= limit
    assert (reply.edns >= 0) == (payload is not None)


def test_a_large_payload_or_tcp_gets_the_whole_set(demo: DemoUpstream) -> None:
    for options in ({"tcp": True}, {"edns": 0, "payload": 16384}):
        reply = ask(*endpoint(demo), "big.demo.test.", "TXT", **options)  # type: ignore[arg-type]
        assert not reply.flags & dns.flags.TC
        assert len(reply.answer[0]) == 40


def test_edns_version_1_is_badvers() -> None:
    reply = direct(dns.message.make_query("www.demo.test.", "A", use_edns=1))
    assert reply.rcode() == dns.rcode.BADVERS
    assert reply.edns == 0
    assert not reply.answer


def test_edns_is_answered_without_the_options_of_the_client() -> None:
    option = dns.edns.GenericOption(10, b"12345678")
    query = dns.message.make_query("www.demo.test.", "A", want_dnssec=True, options=[option])
    reply = direct(query)
    assert reply.edns == 0
    assert reply.payload == 1232
    assert not reply.options


def test_other_opcodes_are_not_implemented() -> None:
    query = dns.message.make_query("www.demo.test.", "A")
    query.set_opcode(dns.opcode.STATUS)
    assert direct(query).rcode() == dns.rcode.NOTIMP


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"\0" * 5,
        b"\xff" * 40,
        bytes(12),
        dns.message.make_response(dns.message.make_query("www.demo.test.", "A")).to_wire(),
        dns.message.make_query("www.demo.test.", "A").to_wire()[:-1],
    ],
    ids=["empty", "short", "noise", "no question", "a reply", "cut"],
)
def test_what_is_no_query_gets_no_answer_and_does_no_harm(demo: DemoUpstream, wire: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.sendto(wire, endpoint(demo))
        client.sendto(
            dns.message.make_query("www.demo.test.", "A", id=77).to_wire(), endpoint(demo)
        )
        # one thread answers in order: had the first been answered, its reply came first
        assert dns.message.from_wire(client.recv(4096)).id == 77


def test_a_peer_that_cannot_be_answered_does_not_end_the_service(demo: DemoUpstream) -> None:
    host, port = endpoint(demo)
    query = dns.message.make_query("www.demo.test.", "A").to_wire()
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    except PermissionError:
        pytest.skip("a datagram from port 0 needs a raw socket, which needs CAP_NET_RAW")
    with raw:
        raw.sendto(struct.pack("!HHHH", 0, port, 8 + len(query), 0) + query, (host, 0))
    assert ask(host, port, "www.demo.test.").answer


def test_several_queries_on_one_connection(demo: DemoUpstream) -> None:
    queries = [dns.message.make_query("www.demo.test.", "A", id=n).to_wire() for n in (1, 2, 3)]
    with socket.create_connection(endpoint(demo), timeout=5) as client:
        client.sendall(b"".join(struct.pack("!H", len(q)) + q for q in queries))
        stream = client.makefile("rb")
        ids = []
        for _ in queries:
            (length,) = struct.unpack("!H", stream.read(2))
            ids.append(dns.message.from_wire(stream.read(length)).id)
    assert ids == [1, 2, 3]


def test_a_taken_address_is_named_with_advice(demo: DemoUpstream) -> None:
    second = DemoUpstream(demo.address)
    with pytest.raises(
        OSError, match=r"cannot start the demo upstream on 127\.0\.0\.1:\d+: .*--demo"
    ):
        second.start()
    # the first one is unharmed
    assert ask(*endpoint(demo), "www.demo.test.").answer


@pytest.mark.parametrize("address", ["localhost:5300", "127.0.0.1", "127.0.0.1:66666", ""])
def test_a_bad_address_is_a_value_error(address: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        DemoUpstream(address)


def test_stop_frees_the_address() -> None:
    address = f"127.0.0.1:{free_port()}"
    for _ in range(2):
        upstream = DemoUpstream(address)
        upstream.start()
        assert ask(*endpoint(upstream), "www.demo.test.").answer
        upstream.stop()


def test_ipv6() -> None:
    try:
        upstream = DemoUpstream(f"[::1]:{free_port('::1')}")
    except (OSError, RuntimeError):
        pytest.skip("no IPv6 on this host")
    upstream.start()
    try:
        assert upstream.address.startswith("[::1]:")
        assert ask(*endpoint(upstream), "www.demo.test.", "AAAA").answer
    finally:
        upstream.stop()
