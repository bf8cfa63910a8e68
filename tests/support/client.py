"""A plain DNS client for tests: dnspython over loopback, with short limits."""

from __future__ import annotations

import dns.message
import dns.query


def ask(
    host: str,
    port: int,
    qname: str,
    qtype: str = "A",
    *,
    tcp: bool = False,
    timeout: float = 5.0,
    edns: int | bool = False,
    payload: int = 1232,
    dnssec: bool = False,
    rd: bool = True,
    source: str | None = None,
) -> dns.message.Message:
    """Ask one question; raises dns.exception.Timeout when no reply comes."""
    query = dns.message.make_query(qname, qtype, use_edns=edns, payload=payload, want_dnssec=dnssec)
    if not rd:
        query.flags &= ~dns.flags.RD
    send = dns.query.tcp if tcp else dns.query.udp
    return send(query, host, timeout=timeout, port=port, source=source)


def answers(server: tuple[str, int], qname: str, qtype: str = "SOA") -> bool:
    """True when something answers there."""
    try:
        ask(*server, qname, qtype, timeout=0.3)
    except (OSError, dns.exception.DNSException):
        return False
    return True
