"""The test support does what the tests rely on: children end, stubs misbehave as told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest

from tests.support.child import Child
from tests.support.client import ask
from tests.support.daemon import Conduit, configuration, with_metrics
from tests.support.ports import free_port
from tests.support.servers import Server, start_nsd
from tests.support.silent_server import SilentServer
from tests.support.stub_upstream import (
    Close,
    Received,
    Send,
    StubUpstream,
    answer,
    rcode,
    reply_to,
    silence,
)

ROOT = Path(__file__).resolve().parents[2]


def is_running(pid: int) -> bool:
    """False for a process that is gone or a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# children


def test_a_child_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    stubborn = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\n"
    child = Child([sys.executable, "-c", stubborn + "time.sleep(60)"])
    child.wait_for_line("up")
    patience = subprocess.Popen.wait
    monkeypatch.setattr(
        subprocess.Popen, "wait", lambda self, timeout=None: patience(self, min(timeout, 0.2))
    )
    assert child.stop() == -signal.SIGKILL


def test_a_child_dies_with_the_process_that_started_it() -> None:
    parent = textwrap.dedent(
        """
        import os, signal, sys
        from tests.support.child import Child
        child = Child([sys.executable, "-c", "import time; time.sleep(60)"])
        print(child.process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", parent], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == -signal.SIGKILL
    pid = int(result.stdout)
    deadline = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(pid)


def test_a_child_that_ends_early_fails_with_its_output() -> None:
    with (
        Child([sys.executable, "-c", "print('no such key'); raise SystemExit(3)"]) as child,
        pytest.raises(AssertionError, match=r"(?s)ended with 3 .*no such key"),
    ):
        child.wait_for_line("listening")


def test_free_port_is_free_for_both_transports() -> None:
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
        udp.bind(("127.0.0.1", port))
        tcp.bind(("127.0.0.1", port))
    # below the range that the kernel gives to clients, or it could be taken a moment later
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert port < low


# the stub


def udp_exchange(stub: StubUpstream, wire: bytes, count: int) -> list[tuple[bytes, int]]:
    """Send one datagram; return `count` replies with the ports they came from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.sendto(wire, (stub.host, stub.port))
        replies = [client.recvfrom(65535) for _ in range(count)]
    return [(data, peer[1]) for data, peer in replies]


def tcp_exchange(stub: StubUpstream, wire: bytes) -> bytes:
    """Send one framed message; return all octets up to the end of the stream."""
    with socket.create_connection((stub.host, stub.port), timeout=5) as client:
        client.sendall(len(wire).to_bytes(2, "big") + wire)
        client.shutdown(socket.SHUT_WR)
        return client.makefile("rb").read()


def query(qname: str = "www.example.test.", qtype: str = "A") -> bytes:
    return dns.message.make_query(qname, qtype, id=0x1234).to_wire()


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_the_stub_answers_by_name_and_records_what_came(stub: StubUpstream, tcp: bool) -> None:
    stub.on("other.example.test.", answer("192.0.2.7", "192.0.2.8"))
    stub.on("gone.example.test.", rcode("NXDOMAIN"))
    before = time.monotonic()
    assert ask(stub.host, stub.port, "www.example.test.", tcp=tcp).answer[0][0].address == (
        "192.0.2.1"
    )
    assert len(ask(stub.host, stub.port, "Other.example.test.", tcp=tcp).answer[0]) == 2
    gone = ask(stub.host, stub.port, "gone.example.test.", tcp=tcp)
    assert gone.rcode() == dns.rcode.NXDOMAIN
    assert [r.qname for r in stub.received] == [
        "www.example.test.",
        "other.example.test.",
        "gone.example.test.",
    ]
    (seen,) = stub.queries("gone.example.test.")
    assert seen.transport == ("tcp" if tcp else "udp")
    assert seen.peer[0] == "127.0.0.1"
    assert seen.id == gone.id
    assert seen.message.question == gone.question
    assert before <= stub.received[0].at <= seen.at <= time.monotonic()


def test_the_stub_tells_lies_in_the_order_given(stub: StubUpstream) -> None:
    def liar(received: Received) -> list[Send | Close]:
        good = reply_to(received, "192.0.2.7")
        return [
            Send(b"\xff\xff" + good[2:]),
            Send(good[:2] + bytes([good[2] & 0x7F]) + good[3:]),
            Send(b"noise"),
            Send(good, other_port=True),
            Send(good),
            Send(good),
        ]

    stub.default = liar
    replies = udp_exchange(stub, query(), 6)
    wires = [wire for wire, _ in replies]
    # the reply of the other socket may overtake or fall behind
    foreign = [port for _, port in replies if port != stub.port]
    assert len(foreign) == 1
    own = [wire for wire, port in replies if port == stub.port]
    assert own[0][:2] == b"\xff\xff"
    assert not dns.message.from_wire(own[1]).flags & dns.flags.QR
    assert own[2] == b"noise"
    assert own[3] == own[4]
    assert dns.message.from_wire(own[3]).answer
    assert len(wires) == 6


def test_the_stub_delays_without_holding_up_others(stub: StubUpstream) -> None:
    stub.on("slow.example.test.", answer(delay=0.3))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        started = time.monotonic()
        client.sendto(query("slow.example.test."), (stub.host, stub.port))
        client.sendto(query("fast.example.test."), (stub.host, stub.port))
        first = dns.message.from_wire(client.recv(4096))
        second = dns.message.from_wire(client.recv(4096))
        elapsed = time.monotonic() - started
    assert str(first.question[0].name) == "fast.example.test."
    assert str(second.question[0].name) == "slow.example.test."
    assert elapsed >= 0.3


def test_the_stub_truncates_over_udp_and_sends_what_is_too_large(stub: StubUpstream) -> None:
    stub.on("tc.example.test.", lambda received: [Send(reply_to(received, tc=True))])
    assert ask(stub.host, stub.port, "tc.example.test.").flags & dns.flags.TC
    texts = [f'"{n:02d}{"x" * 200}"' for n in range(30)]
    stub.on(
        "large.example.test.",
        lambda received: [Send(reply_to(received, *texts, rtype="TXT"))],
    )
    ((wire, _),) = udp_exchange(stub, query("large.example.test.", "TXT"), 1)
    assert len(wire) > 4096
    assert len(dns.message.from_wire(wire).answer[0]) == 30


def test_the_stub_cuts_and_packs_over_tcp(stub: StubUpstream) -> None:
    def framed(received: Received) -> bytes:
        wire = reply_to(received, "192.0.2.7")
        return len(wire).to_bytes(2, "big") + wire

    stub.on("half.example.test.", lambda r: [Send(framed(r)[:20], raw=True), Close()])
    stub.on("length.example.test.", lambda r: [Send(b"\0", raw=True), Close()])
    stub.on("close.example.test.", lambda r: [Close()])
    stub.on("two.example.test.", lambda r: [Send(framed(r) * 2, raw=True), Close()])
    assert len(tcp_exchange(stub, query("half.example.test."))) == 20
    assert tcp_exchange(stub, query("length.example.test.")) == b"\0"
    assert tcp_exchange(stub, query("close.example.test.")) == b""
    two = tcp_exchange(stub, query("two.example.test."))
    length = 2 + int.from_bytes(two[:2], "big")
    assert two[:length] == two[length:]
    assert len(two) == 2 * length


def test_the_stub_resets_a_connection(stub: StubUpstream) -> None:
    stub.default = lambda received: [Close(reset=True)]
    wire = query()
    with socket.create_connection((stub.host, stub.port), timeout=5) as client:
        client.sendall(len(wire).to_bytes(2, "big") + wire)
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_the_stub_refuses_tcp_when_told(stub: StubUpstream) -> None:
    stub.close_tcp()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((stub.host, stub.port), timeout=5)
    assert ask(stub.host, stub.port, "www.example.test.").answer


def test_the_stub_survives_what_is_no_query(stub: StubUpstream) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for wire in (b"", b"\0", bytes(12), b"\xff" * 30):
            client.sendto(wire, (stub.host, stub.port))
    assert tcp_exchange(stub, b"noise") == b""
    assert ask(stub.host, stub.port, "www.example.test.").answer
    assert [r.wire for r in stub.received if not r.qname][1:3] == [b"\0", bytes(12)]
    assert len(stub.queries("www.example.test.")) == 1


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_silence_is_a_timeout(stub: StubUpstream, tcp: bool) -> None:
    stub.on("quiet.example.test.", silence)
    with SilentServer() as silent:
        for port in (stub.port, silent.port):
            with pytest.raises(dns.exception.Timeout):
                ask("127.0.0.1", port, "quiet.example.test.", tcp=tcp, timeout=0.1)
        assert silent.datagrams() == (0 if tcp else 1)
        assert silent.datagrams() == 0
    assert len(stub.queries("quiet.example.test.")) == 1


# real servers


def test_nsd_serves_the_fixture_zone(nsd: Server) -> None:
    def values(qname: str, qtype: str, **options: object) -> list[str]:
        reply = ask(nsd.host, nsd.port, qname, qtype, **options)  # type: ignore[arg-type]
        assert reply.flags & dns.flags.AA
        return [rdata.to_text() for rrset in reply.answer for rdata in rrset]

    assert values("www.example.test.", "A") == ["192.0.2.10"]
    assert values("www.example.test.", "AAAA") == ["2001:db8::10"]
    assert values("api.example.test.", "A") == ["192.0.2.11"]
    assert values("alias.example.test.", "A") == ["www.example.test.", "192.0.2.10"]
    assert values("ns1.example.test.", "A") == ["192.0.2.53"]
    assert len(values("big.example.test.", "A", tcp=True)) == 60
    texts = values("bigtxt.example.test.", "TXT", tcp=True)
    assert sum(len(text) for text in texts) > 4096
    missing = ask(nsd.host, nsd.port, "missing.example.test.")
    assert missing.rcode() == dns.rcode.NXDOMAIN
    (soa,) = missing.authority
    # RFC 2308 section 3: the SOA of a negative answer lives as long as its MINIMUM says
    assert (soa.rdtype, soa.ttl, soa[0].minimum) == (dns.rdatatype.SOA, 300, 300)
    dangling = ask(nsd.host, nsd.port, "dangle.dangletest.test.")
    assert dangling.rcode() == dns.rcode.NXDOMAIN
    assert dangling.answer[0].rdtype == dns.rdatatype.CNAME


def test_nsd_has_no_rate_limit(nsd: Server) -> None:
    wire = query()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect((nsd.host, nsd.port))
        for _ in range(1000):
            client.send(wire)
            assert not client.recv(4096)[2] & 0x02


def test_dnsmasq_keeps_a_query_log(dnsmasq: Server) -> None:
    reply = ask(dnsmasq.host, dnsmasq.port, "www.smoke.test.")
    assert reply.answer[0][0].address == "192.0.2.20"
    # the trap of chapter 70 section 4.3: a TTL of 0 would never be cached
    assert reply.answer[0].ttl == 300
    ask(dnsmasq.host, dnsmasq.port, "logged.smoke.test.", source="127.0.0.2")
    dnsmasq.child.wait_for_line("query[A] logged.smoke.test from 127.0.0.2")
    assert dnsmasq.query_log("query[A] logged.smoke.test from 127.0.0.2") == 1


def test_unbound_has_the_shapes_of_chapter_70(unbound: Server) -> None:
    alias = ask(unbound.host, unbound.port, "alias.localcname.test.")
    assert [rrset.rdtype for rrset in alias.answer] == [dns.rdatatype.CNAME]
    outside = ask(unbound.host, unbound.port, "nosuch.elsewhere.test.")
    assert outside.rcode() == dns.rcode.NXDOMAIN
    assert outside.flags & dns.flags.AA
    refused = ask(unbound.host, unbound.port, "nosuch.invalid-elsewhere.", rd=False)
    assert refused.rcode() == dns.rcode.REFUSED


def test_a_stopped_server_leaves_nothing_behind(tmp_path: Path) -> None:
    server = start_nsd(tmp_path / "nsd")
    pid = server.child.process.pid
    family = [pid, *(int(p) for p in descendants(pid))]
    assert len(family) > 1
    server.stop()
    deadline = time.monotonic() + 5
    while any(is_running(p) for p in family) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [p for p in family if is_running(p)]


def descendants(pid: int) -> list[int]:
    children = [
        int(child)
        for task in os.listdir(f"/proc/{pid}/task")
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    ]
    return children + [found for child in children for found in descendants(child)]


def test_an_absent_program_skips_with_the_name_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.servers.shutil.which", lambda name, path=None: None)
    with pytest.raises(pytest.skip.Exception, match=r"nsd is not installed \(Debian package nsd\)"):
        start_nsd(tmp_path)


# the daemon


def test_the_daemon_runner_queries_reloads_scrapes_and_stops(
    stub: StubUpstream, start_conduit: Callable[..., Conduit]
) -> None:
    config = configuration(stub.address, metrics=with_metrics(free_port()))
    conduit = start_conduit(config)
    assert conduit.query("www.example.test.").answer
    assert conduit.query("www.example.test.", tcp=True).answer
    assert conduit.metric("conduit_queries_total") == 2
    assert conduit.metric("conduit_queries_total", protocol="no such protocol") == 0
    conduit.write({**config, "forward": {"timeout_ms": 321}})
    conduit.reload()
    assert conduit.metric("conduit_config_generation") == 2
    assert conduit.stop() == 0
