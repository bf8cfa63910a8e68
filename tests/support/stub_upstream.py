"""A DNS server that does what a test tells it, per query name: wrong ids, delays, cuts, silence.

One port for UDP and TCP. Every received message is recorded. A behaviour is a function from a
`Received` query to a list of `Send` and `Close` steps.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from tests.support.ports import free_port


@dataclass(frozen=True)
class Received:
    """One query as it came in."""

    wire: bytes
    transport: str
    peer: tuple[str, int]
    at: float

    @property
    def message(self) -> dns.message.Message:
        return dns.message.from_wire(self.wire, ignore_trailing=True)

    @property
    def qname(self) -> str:
        """The query name in lower case; empty when the message cannot be read."""
        try:
            return self.message.question[0].name.to_text().lower()
        except (dns.exception.DNSException, IndexError):
            return ""

    @property
    def id(self) -> int:
        return int.from_bytes(self.wire[:2], "big")


@dataclass(frozen=True)
class Send:
    """Send `wire` after `delay` seconds; over TCP unframed when `raw`; UDP from another port."""

    wire: bytes
    delay: float = 0.0
    raw: bool = False
    other_port: bool = False


@dataclass(frozen=True)
class Close:
    """Close the TCP connection, with a reset when `reset`."""

    reset: bool = False


Step = Send | Close
Behaviour = Callable[[Received], Sequence[Step]]


def reply_to(
    query: Received,
    *records: str,
    rcode: str = "NOERROR",
    tc: bool = False,
    rtype: str = "A",
    ttl: int = 60,
) -> bytes:
    """A well-formed reply with records of one type."""
    reply = dns.message.make_response(query.message, recursion_available=True)
    reply.set_rcode(dns.rcode.from_text(rcode))
    if tc:
        reply.flags |= dns.flags.TC
    if records:
        reply.answer.append(
            dns.rrset.from_text(query.message.question[0].name, ttl, "IN", rtype, *records)
        )
    return reply.to_wire(max_size=65535)


def answer(*records: str, delay: float = 0.0, **options: object) -> Behaviour:
    """Answer with records (default one A record), after `delay` seconds."""
    texts = records or ("192.0.2.1",)
    return lambda query: [Send(reply_to(query, *texts, **options), delay)]  # type: ignore[arg-type]


def rcode(name: str, delay: float = 0.0) -> Behaviour:
    """Answer with an rcode and no records."""
    return lambda query: [Send(reply_to(query, rcode=name), delay)]


def silence(query: Received) -> Sequence[Step]:
    """Answer nothing."""
    return []


@dataclass
class StubUpstream:
    """The server; use it as a context manager. `on(name, behaviour)` scripts one query name."""

    host: str = "127.0.0.1"
    default: Behaviour = field(default_factory=answer)

    def __post_init__(self) -> None:
        self.port = free_port(self.host)
        self.address = (
            f"[{self.host}]:{self.port}" if ":" in self.host else (f"{self.host}:{self.port}")
        )
        self.received: list[Received] = []
        self._behaviours: dict[str, Behaviour] = {}
        self._stopping = False
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._udp = socket.socket(family, socket.SOCK_DGRAM)
        self._udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        self._udp.bind((self.host, self.port))
        self._other = socket.socket(family, socket.SOCK_DGRAM)
        self._other.bind((self.host, 0))
        self._tcp = socket.socket(family, socket.SOCK_STREAM)
        self._tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._tcp.bind((self.host, self.port))
        self._tcp.listen(64)

    def on(self, qname: str, behaviour: Behaviour) -> None:
        """Script the answers for one query name (absolute, lower case)."""
        self._behaviours[qname] = behaviour

    def queries(self, qname: str) -> list[Received]:
        """The queries received for one name."""
        return [r for r in list(self.received) if r.qname == qname]

    def __enter__(self) -> StubUpstream:
        for target in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=target, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the sockets; the threads end with them."""
        self._stopping = True
        for sock in (self._udp, self._tcp, self._other):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def close_tcp(self) -> None:
        """Refuse TCP from now on."""
        try:
            self._tcp.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._tcp.close()

    def _steps(self, query: Received) -> Sequence[Step]:
        self.received.append(query)
        qname = query.qname
        # what is no query is recorded and gets no answer
        return self._behaviours.get(qname, self.default if qname else silence)(query)

    def _serve_udp(self) -> None:
        while not self._stopping:
            try:
                wire, peer = self._udp.recvfrom(65535)
            except OSError:
                return
            if not peer:
                return
            query = Received(wire, "udp", peer[:2], time.monotonic())
            for step in self._steps(query):
                if isinstance(step, Send):
                    if step.delay:
                        timer = threading.Timer(step.delay, self._send_udp, (step, peer))
                        timer.daemon = True
                        timer.start()
                    else:
                        self._send_udp(step, peer)

    def _send_udp(self, step: Send, peer: tuple[str, int]) -> None:
        try:
            (self._other if step.other_port else self._udp).sendto(step.wire, peer)
        except OSError:
            pass

    def _serve_tcp(self) -> None:
        while not self._stopping:
            try:
                client, peer = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_client, args=(client, peer), daemon=True).start()

    def _serve_client(self, client: socket.socket, peer: tuple[str, int]) -> None:
        with client:
            client.settimeout(10)
            try:
                stream = client.makefile("rb")
                while len(prefix := stream.read(2)) == 2:
                    wire = stream.read(int.from_bytes(prefix, "big"))
                    query = Received(wire, "tcp", peer[:2], time.monotonic())
                    for step in self._steps(query):
                        if isinstance(step, Close):
                            if step.reset:
                                client.setsockopt(
                                    socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                                )
                            # makefile holds a reference: close the connection itself
                            client.shutdown(socket.SHUT_RDWR) if not step.reset else None
                            stream.close()
                            return
                        if step.delay:
                            time.sleep(step.delay)
                        frame = step.wire
                        if not step.raw:
                            frame = len(frame).to_bytes(2, "big") + frame
                        client.sendall(frame)
            except OSError:
                return
