"""The demo upstream: a small authoritative server for `demo.test.`, run by `conduit --demo` only.

It lets a newcomer see the forwarder answer on a machine with no other DNS server.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.zone

from conduit.config.address import SocketAddress, parse_socket_address
from conduit.observe.logging import get_log

_log = get_log("conduit")

ZONE_TEXT = """
$ORIGIN demo.test.
$TTL 300
@     SOA   ns1 hostmaster 2026010100 3600 600 86400 60
@     NS    ns1
@     TXT   "the zone of the DNS Conduit demo"
ns1   A     192.0.2.53
www   A     192.0.2.1
www   AAAA  2001:db8::1
alias CNAME www
mail  MX    10 www
txt   TXT   "DNS Conduit is answering"
""" + "".join(f'big TXT "{number:03d} {"x" * 200}"\n' for number in range(40))


class DemoUpstream:
    """Answers UDP and TCP on one address, each in a thread of its own."""

    def __init__(self, address: str = "127.0.0.1:5300") -> None:
        """Raises ValueError when `address` is not `ip:port`."""
        self._address: SocketAddress = parse_socket_address(address)
        self._zone = dns.zone.from_text(ZONE_TEXT, origin="demo.test.", relativize=False)
        self._udp: socket.socket | None = None
        self._tcp: socket.socket | None = None

    @property
    def address(self) -> str:
        """The bound address, with the real port where 0 was asked for."""
        if self._udp is None:
            return str(self._address)
        host, port = self._udp.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        """Bind and serve; raises OSError, with the address in its text, when it is taken."""
        family = self._address.family
        udp = socket.socket(family, socket.SOCK_DGRAM)
        tcp = socket.socket(family, socket.SOCK_STREAM)
        try:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            udp.bind(self._address.sockaddr)
            tcp.bind(udp.getsockname())
            tcp.listen(16)
        except OSError as error:
            udp.close()
            tcp.close()
            raise OSError(
                f"cannot start the demo upstream on {self._address}: {error.strerror}; "
                "another server may be using the address, give another one with --demo ADDRESS"
            ) from error
        self._udp, self._tcp = udp, tcp
        for name, target in (("udp", self._serve_udp), ("tcp", self._serve_tcp)):
            threading.Thread(target=target, name=f"conduit-demo-{name}", daemon=True).start()

    def stop(self) -> None:
        """Close both sockets; the threads end with them."""
        for sock in (self._udp, self._tcp):
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                sock.close()

    def _serve_udp(self) -> None:
        udp = self._udp
        assert udp is not None
        while True:
            try:
                wire, peer = udp.recvfrom(65535)
            except OSError:
                return
            if not peer:
                return
            reply = self.answer(wire, tcp=False)
            if reply is not None:
                # a peer that cannot be reached (source port 0) must not end the service
                with contextlib.suppress(OSError):
                    udp.sendto(reply, peer)

    def _serve_tcp(self) -> None:
        tcp = self._tcp
        assert tcp is not None
        while True:
            try:
                client, _ = tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client: socket.socket) -> None:
        with client:
            client.settimeout(5.0)
            try:
                stream = client.makefile("rb")
                while prefix := stream.read(2):
                    (length,) = struct.unpack("!H", prefix)
                    reply = self.answer(stream.read(length), tcp=True)
                    if reply is None:
                        return
                    client.sendall(struct.pack("!H", len(reply)) + reply)
            except (OSError, struct.error):
                return

    def answer(self, wire: bytes, tcp: bool) -> bytes | None:
        """Return the reply to one query, or None for what is no query."""
        try:
            query = dns.message.from_wire(wire, ignore_trailing=True)
        except (dns.exception.DNSException, struct.error, ValueError):
            return None
        if query.flags & dns.flags.QR or len(query.question) != 1:
            return None
        reply = dns.message.make_response(query, our_payload=1232)
        if query.edns > 0:
            reply.set_rcode(dns.rcode.BADVERS)
        elif query.opcode() != dns.opcode.QUERY:
            reply.set_rcode(dns.rcode.NOTIMP)
        else:
            self._fill(reply)
        limit = 65535 if tcp else max(512, query.payload if query.edns >= 0 else 512)
        try:
            return reply.to_wire(max_size=limit)
        except dns.exception.TooBig:
            for section in (reply.answer, reply.authority, reply.additional):
                section.clear()
            reply.flags |= dns.flags.TC
            return reply.to_wire(max_size=limit)

    def _fill(self, reply: dns.message.Message) -> None:
        question = reply.question[0]
        name, rtype = question.name, question.rdtype
        origin = self._zone.origin
        assert origin is not None
        if question.rdclass != self._zone.rdclass or not name.is_subdomain(origin):
            reply.set_rcode(dns.rcode.REFUSED)
            return
        reply.flags |= dns.flags.AA
        for _ in range(8):
            alias = self._zone.get_rrset(name, dns.rdatatype.CNAME)
            if alias is None or rtype in (dns.rdatatype.CNAME, dns.rdatatype.ANY):
                break
            reply.answer.append(alias)
            name = alias[0].target
        if rtype == dns.rdatatype.ANY:
            for rdataset in self._zone.get_node(name) or ():
                rrset = self._zone.get_rrset(name, rdataset.rdtype)
                if rrset is not None:
                    reply.answer.append(rrset)
        elif (found := self._zone.get_rrset(name, rtype)) is not None:
            reply.answer.append(found)
            return
        if reply.answer:
            return
        if self._zone.get_node(name) is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        soa = self._zone.get_rrset(origin, dns.rdatatype.SOA)
        assert soa is not None
        # RFC 2308 section 3: a negative answer lives no longer than the SOA's MINIMUM
        soa.ttl = min(soa.ttl, soa[0].minimum)
        reply.authority.append(soa)
