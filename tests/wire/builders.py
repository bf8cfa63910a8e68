"""Builds messages for the tests of `conduit.wire`: by hand from octets, and with dnspython."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import dns.edns
import dns.flags
import dns.message
import dns.rrset

WWW = b"\3www\7example\3com\0"
QUESTION = WWW + b"\0\1\0\1"


def header(
    id: int = 0x1234,
    flags: int = 0x0100,
    qd: int = 1,
    an: int = 0,
    ns: int = 0,
    ar: int = 0,
) -> bytes:
    """The twelve octets of a header."""
    return struct.pack("!6H", id, flags, qd, an, ns, ar)


def record(
    owner: bytes, rtype: int, rdata: bytes, rclass: int = 1, ttl: int = 300, rdlength: int = -1
) -> bytes:
    """One record; `rdlength` may lie."""
    length = len(rdata) if rdlength < 0 else rdlength
    return owner + struct.pack("!HHIH", rtype, rclass, ttl, length) + rdata


def opt(
    options: bytes = b"", size: int = 1232, ttl: int = 0, owner: bytes = b"\0", rdlength: int = -1
) -> bytes:
    """One OPT record; `ttl` holds the extended rcode, version and flags."""
    return record(owner, 41, options, size, ttl, rdlength)


def option(code: int, data: bytes, length: int = -1) -> bytes:
    """One EDNS option; `length` may lie."""
    return struct.pack("!2H", code, len(data) if length < 0 else length) + data


def query(
    name: str = "www.example.com.",
    rtype: str = "A",
    options: Sequence[dns.edns.Option] = (),
    **arguments: object,
) -> bytes:
    """A query made by dnspython."""
    return dns.message.make_query(name, rtype, options=list(options), **arguments).to_wire()


def reply(
    answers: Sequence[dns.rrset.RRset] = (),
    authority: Sequence[dns.rrset.RRset] = (),
    additional: Sequence[dns.rrset.RRset] = (),
    name: str = "www.example.com.",
    rtype: str = "A",
    rcode: int = 0,
    payload: int | None = None,
    flags: int = 0,
) -> bytes:
    """A reply made by dnspython, with an OPT when `payload` is given."""
    message = dns.message.make_query(name, rtype, id=0x1234)
    message.flags = dns.flags.QR | dns.flags.RD | dns.flags.RA | flags
    message.set_rcode(rcode)
    message.answer = list(answers)
    message.authority = list(authority)
    message.additional = list(additional)
    if payload is not None:
        message.use_edns(0, payload=payload)
    return message.to_wire(max_size=65535)


def addresses(count: int, owner: str = "www.example.com.") -> dns.rrset.RRset:
    """`count` A records of one owner."""
    return dns.rrset.from_text_list(owner, 300, "IN", "A", [f"192.0.2.{i}" for i in range(count)])


def glue(count: int, rtype: str = "AAAA") -> list[dns.rrset.RRset]:
    """`count` records of as many owners."""
    return [
        dns.rrset.from_text(f"host-{i}.example.com.", 300, "IN", rtype, f"2001:db8::{i:x}")
        for i in range(count)
    ]


SOA = dns.rrset.from_text(
    "example.com.", 300, "IN", "SOA", "ns.example.com. admin.example.com. 1 2 3 4 5"
)
