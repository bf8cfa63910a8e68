"""Forwarding through real servers: the pass-through contract of chapter 70."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from tests.support.client import ask
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.servers import Server, start_nsd

Start = Callable[..., Conduit]


def shape(message: dns.message.Message) -> tuple[object, ...]:
    """What parity compares: rcode, flags, answer data and types, section counts, EDNS."""
    rdata = sorted(rdata.to_text() for rrset in message.answer for rdata in rrset)
    types = sorted({rrset.rdtype for rrset in message.answer})
    flags = message.flags & (dns.flags.AA | dns.flags.TC | dns.flags.RD | dns.flags.RA)
    return (
        message.rcode(),
        flags,
        rdata,
        types,
        sum(len(r) for r in message.authority),
        message.edns >= 0,
    )


def parity(
    conduit: Conduit, server: Server, qname: str, qtype: str = "A", **options: object
) -> dns.message.Message:
    """Ask through the forwarder and directly; both must have the same shape."""
    direct = ask(server.host, server.port, qname, qtype, **options)  # type: ignore[arg-type]
    through = conduit.query(qname, qtype, **options)
    assert shape(through) == shape(direct)
    return through


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads reuse_port"])
def through_nsd(request: pytest.FixtureRequest, nsd: Server, start_conduit: Start) -> Conduit:
    config = configuration(nsd.address)
    if request.param == 2:
        config["listeners"] |= {"threads": 2, "reuse_port": True}
    return start_conduit(config)


CASES = [
    ("www.example.test.", "A", "NOERROR"),
    ("www.example.test.", "AAAA", "NOERROR"),
    ("api.example.test.", "A", "NOERROR"),
    ("alias.example.test.", "A", "NOERROR"),
    ("www.example.test.", "MX", "NOERROR"),
    ("missing.example.test.", "A", "NXDOMAIN"),
    ("dangle.dangletest.test.", "A", "NXDOMAIN"),
    ("no.such.zone.test.", "A", "REFUSED"),
    ("www.example.test.", "ANY", "NOERROR"),
    ("www.example.test.", "TYPE65280", "NOERROR"),
]


def test_auth_cases_have_parity(through_nsd: Conduit, nsd: Server) -> None:
    for qname, qtype, rcode in CASES:
        for tcp in (False, True):
            for rd in (True, False):
                reply = parity(through_nsd, nsd, qname, qtype, tcp=tcp, rd=rd)
                assert dns.rcode.to_text(reply.rcode()) == rcode
        parity(through_nsd, nsd, qname, qtype, edns=0, dnssec=True)


def test_ch70_example_08_payload_512_shows_truncation(through_nsd: Conduit, nsd: Server) -> None:
    reply = through_nsd.query("big.example.test.", edns=0, payload=512)
    assert reply.flags & dns.flags.TC
    assert reply.edns >= 0
    assert len(reply.to_wire()) <= 512


def test_ch70_example_09_no_opt_shows_truncation(through_nsd: Conduit, nsd: Server) -> None:
    reply = through_nsd.query("big.example.test.")
    assert reply.flags & dns.flags.TC
    assert reply.edns == -1
    assert len(reply.to_wire()) <= 512


def test_ch70_example_10_tcp_client_gets_the_whole_set_by_fallback(
    nsd: Server, start_conduit: Start
) -> None:
    config = configuration(
        nsd.address, forward={"upstream_transport": "prefer_udp_with_tcp_fallback"}
    )
    conduit = start_conduit(config)
    reply = conduit.query("big.example.test.", tcp=True)
    assert not reply.flags & dns.flags.TC
    assert sum(len(r) for r in reply.answer) == 60
    # a UDP client with room for it, too: the fallback happened upstream
    reply = conduit.query("bigtxt.example.test.", "TXT", tcp=True)
    assert sum(len(r) for r in reply.answer) == 40
    reply = conduit.query("bigtxt.example.test.", "TXT", edns=0, payload=1232)
    assert reply.flags & dns.flags.TC
    assert len(reply.to_wire()) <= 1232


def test_tcp_client_under_udp_only_gets_the_truncated_answer(
    nsd: Server, start_conduit: Start
) -> None:
    conduit = start_conduit(configuration(nsd.address))
    assert conduit.query("big.example.test.", tcp=True).flags & dns.flags.TC


def test_client_tcp_uses_upstream_tcp(nsd: Server, start_conduit: Start) -> None:
    conduit = start_conduit(
        configuration(
            nsd.address,
            forward={
                "upstream_transport": "prefer_udp_with_tcp_fallback",
                "client_tcp_uses_upstream_tcp": True,
            },
        )
    )
    for _ in range(3):
        reply = conduit.query("bigtxt.example.test.", "TXT", tcp=True)
        assert not reply.flags & dns.flags.TC


def test_ch20_example_28_tcp_only(nsd: Server, start_conduit: Start) -> None:
    conduit = start_conduit(configuration(nsd.address, forward={"upstream_transport": "tcp_only"}))
    for _ in range(5):
        assert conduit.query("www.example.test.").answer


def test_unbound_shapes(unbound: Server, start_conduit: Start) -> None:
    conduit = start_conduit(configuration(unbound.address))
    assert parity(conduit, unbound, "www.smoke.test.").answer
    alias = parity(conduit, unbound, "alias.localcname.test.")
    assert [r.rdtype for r in alias.answer] == [dns.rdatatype.CNAME]
    unknown = parity(conduit, unbound, "nosuch.elsewhere.test.")
    assert unknown.rcode() == dns.rcode.NXDOMAIN
    assert unknown.flags & dns.flags.AA
    refused = parity(conduit, unbound, "www.example.com.", rd=False)
    assert refused.rcode() == dns.rcode.REFUSED


def test_dnsmasq_shapes(dnsmasq: Server, start_conduit: Start) -> None:
    conduit = start_conduit(configuration(dnsmasq.address))
    assert parity(conduit, dnsmasq, "www.smoke.test.", edns=0, payload=1232).edns >= 0
    assert parity(conduit, dnsmasq, "www.smoke.test.").edns == -1
    assert len(parity(conduit, dnsmasq, "alias.cname.smoke.test.").answer) == 2
    empty = parity(conduit, dnsmasq, "www.aonly.smoke.test.", "AAAA")
    assert not empty.answer
    assert not empty.authority


def test_ipv6_client_and_ipv6_backend(tmp_path: Path, start_conduit: Start) -> None:
    server = start_nsd(tmp_path / "nsd6", host="::1")
    try:
        config = configuration(server.address)
        config["listeners"]["listeners"] = [
            {"address": "[::1]:0", "protocol": "udp"},
            {"address": "[::1]:0", "protocol": "tcp"},
        ]
        config["forward"] = {"sources_v6": ["::1"]}
        conduit = start_conduit(config)
        for tcp in (False, True):
            assert parity(conduit, server, "www.example.test.", "AAAA", tcp=tcp).answer
    finally:
        server.stop()


def test_two_backends_with_weights_3_to_1(
    nsd: Server, tmp_path: Path, start_conduit: Start
) -> None:
    second = start_nsd(tmp_path / "second")
    metrics_port = free_port()
    config = configuration(metrics=with_metrics(metrics_port))
    config["pools"] = [
        {
            "name": "default",
            "backends": [
                {"name": "heavy", "address": nsd.address, "weight": 3},
                {"name": "light", "address": second.address, "weight": 1},
            ],
        }
    ]
    try:
        conduit = start_conduit(config)
        host, port = conduit.listener()
        counts: Counter[int] = Counter()
        for _ in range(4000):
            counts[ask(host, port, "www.example.test.").rcode()] += 1
        assert counts == {dns.rcode.NOERROR: 4000}
        heavy = conduit.metric("conduit_forward_attempts_total", backend="heavy", outcome="success")
        light = conduit.metric("conduit_forward_attempts_total", backend="light", outcome="success")
        assert heavy + light == 4000
        assert heavy == pytest.approx(3000, rel=0.05)
        assert light == pytest.approx(1000, rel=0.05)
    finally:
        second.stop()


def test_wildcard_binds_answer_from_the_address_asked(nsd: Server, start_conduit: Start) -> None:
    port = free_port("0.0.0.0")
    config = configuration(nsd.address)
    config["listeners"]["listeners"] = [
        {"address": f"{host}:{port}", "protocol": protocol}
        for host in ("0.0.0.0", "[::]")
        for protocol in ("udp", "tcp")
    ]
    start_conduit(config)
    # dnspython refuses a reply from another address than it asked
    for host in ("127.0.0.1", "127.0.0.2", "127.9.8.7", "::1"):
        for tcp in (False, True):
            assert ask(host, port, "www.example.test.", tcp=tcp).answer


def test_a_lone_ipv6_wildcard_serves_ipv4_clients_as_ipv4(
    nsd: Server, start_conduit: Start
) -> None:
    port = free_port("::")
    config = configuration(nsd.address, metrics=with_metrics(free_port()))
    config["listeners"]["listeners"] = [{"address": f"[::]:{port}", "protocol": "udp"}]
    conduit = start_conduit(config)
    assert ask("127.0.0.3", port, "www.example.test.").answer
    assert ask("::1", port, "www.example.test.").answer
    assert conduit.metric("conduit_queries_total", ip_family="v4") == 1
    assert conduit.metric("conduit_queries_total", ip_family="v6") == 1
