"""Queries and upstream answers for cache tests, built and judged by dnspython."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from conduit.lookup.cache.entry import Entry, build_entry
from conduit.lookup.cache.keys import cache_key
from conduit.lookup.cache.policy import CachePolicy
from conduit.wire import Query, parse_query

PLAIN = CachePolicy()
SOA = "ns.test. root.test. 1 3600 600 86400"


def query(name: str, rtype: str = "A", *, flags: str = "RD", **options: Any) -> Query:
    """Return a client's query; `options` are those of dns.message.make_query."""
    message = dns.message.make_query(name, rtype, **options)
    message.flags = dns.flags.from_text(flags)
    parsed = parse_query(message.to_wire())
    assert isinstance(parsed, Query), parsed
    return parsed


def key_of(asked: Query) -> bytes:
    """Return the key of a query that is cached."""
    key = cache_key(asked)
    assert key is not None
    return key


def reply_message(
    asked: Query,
    answer: Sequence[str] = (),
    authority: Sequence[str] = (),
    additional: Sequence[str] = (),
    *,
    rcode: int = 0,
    flags: str = "",
    edns: bool | None = None,
    options: Sequence[dns.edns.Option] = (),
) -> dns.message.Message:
    """Return the upstream's reply; records are written as `name TTL type data`."""
    message = dns.message.make_response(dns.message.from_wire(asked.wire), recursion_available=True)
    message.flags |= dns.flags.from_text(flags)
    for section, records in (
        (message.answer, answer),
        (message.authority, authority),
        (message.additional, additional),
    ):
        for text in records:
            name, ttl, rtype, data = text.split(None, 3)
            section.append(dns.rrset.from_text(name, int(ttl), "IN", rtype, data))
    if edns is False:
        message.use_edns(False)
    elif edns or options:
        message.use_edns(0, options=list(options))
    message.set_rcode(dns.rcode.Rcode(rcode))
    return message


def reply(asked: Query, *sections: Sequence[str], **options: Any) -> bytes:
    """Return the upstream's reply as octets; see `reply_message`."""
    return reply_message(asked, *sections, **options).to_wire()


def stored(
    asked: Query, answer: bytes, now: float = 0.0, policy: CachePolicy = PLAIN, tcp: bool = False
) -> Entry:
    """Return the entry of an answer that is stored."""
    built = build_entry(asked, answer, now, policy, tcp)
    assert isinstance(built, Entry), built
    return built


def lifetime(asked: Query, answer: bytes, policy: CachePolicy = PLAIN) -> float | None:
    """Return for how many seconds an answer is stored, None when it is not."""
    built = build_entry(asked, answer, 0.0, policy, False)
    return built.expires if isinstance(built, Entry) else None


def parse(wire: bytes | None) -> dns.message.Message:
    """Return what dnspython reads, record by record; trailing octets are an error."""
    assert wire is not None
    return dns.message.from_wire(wire, one_rr_per_rrset=True)


def ttls(wire: bytes | None) -> list[int]:
    """Return the TTLs of all sections in order."""
    message = parse(wire)
    return [rr.ttl for section in message.sections[1:] for rr in section]
