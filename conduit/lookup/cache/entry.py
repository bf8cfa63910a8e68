"""Decides whether an upstream answer is stored, for how long, and in which form.

`build_entry` holds every fill rule (chapter 40 sections 6.2 and 6.3, with the rules that close what
one client could do to another); an `Entry` is an answer with the places that serving touches.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final

from conduit.lookup.cache.encode import Body
from conduit.lookup.cache.keys import client_subnet
from conduit.lookup.cache.layout import Layout, lay_out, options_to_serve
from conduit.lookup.cache.policy import CachePolicy
from conduit.wire import Query
from conduit.wire.structure import unpack_fixed

_TC: Final = 0x0200
_TOP_BIT: Final = 0x80000000

_TYPE_SOA: Final = 6
_TYPE_SIG: Final = 24
_TYPE_TKEY: Final = 249
_TYPE_TSIG: Final = 250

_NOERROR: Final = 0
_FORMERR: Final = 1
_SERVFAIL: Final = 2
_NXDOMAIN: Final = 3
_NOTIMP: Final = 4
_REFUSED: Final = 5

# seconds, for answers without a record to take a lifetime from (chapter 40 section 6.3)
_NEGATIVE_TTL_WITHOUT_RECORDS: Final = 300
_OTHER_TTL_WITHOUT_RECORDS: Final = 60


class Kind(IntEnum):
    """What an entry says of its name; the numbers stand in LMDB files."""

    POSITIVE = 0
    NXDOMAIN = 1
    NODATA = 2
    SERVFAIL = 3


class Refusal(Enum):
    """Why an answer is not stored."""

    #: no believable reply to the question; an older entry stays
    UNDECODABLE = "undecodable"
    #: TC is set and truncated answers are not kept for this client; an older entry stays
    TRUNCATED = "truncated"
    #: a fresh answer that must not be stored; an older entry goes
    UNCACHEABLE = "uncacheable"


class Entry:
    """One stored answer. Treat it as immutable but for the fields of the store that holds it.

    `stored` and `expires` are seconds of the store's clock. `ttl_offsets` count from the end of
    the question. Offsets are octets.
    """

    __slots__ = (
        "body_end",
        "detached",
        "expires",
        "kind",
        "options",
        "question_end",
        "slot",
        "stored",
        "ttl_offsets",
        "used",
        "wire",
    )

    def __init__(
        self,
        wire: bytes,
        stored: float,
        expires: float,
        kind: int,
        question_end: int,
        body_end: int,
        ttl_offsets: tuple[int, ...],
        options: bytes,
    ) -> None:
        #: the upstream's message
        self.wire = wire
        self.stored = stored
        self.expires = expires
        self.kind = kind
        self.question_end = question_end
        #: offset after the last record that is no OPT
        self.body_end = body_end
        self.ttl_offsets = ttl_offsets
        #: EDNS options of the upstream that each reply carries on
        self.options = options
        #: the records without pointers into the question; made when first needed
        self.detached: Body | None = None
        # the memory store's: position in its table, and whether a hit came since it last looked
        self.slot = -1
        self.used = False

    @property
    def rcode(self) -> int:
        """The 4-bit rcode; entries never have an extended one."""
        return self.wire[3] & 0xF

    @property
    def truncated(self) -> bool:
        """Whether the stored message has TC set."""
        return self.wire[2] & 0x02 != 0

    @property
    def covers_descendants(self) -> bool:
        """Whether this denies every name below the question's (RFC 8020 section 2).

        An NXDOMAIN with answer records speaks of the end of an alias chain, not of the name asked.
        """
        return self.kind == Kind.NXDOMAIN and self.wire[6:8] == b"\0\0"


def build_entry(
    query: Query, answer: bytes, now: float, policy: CachePolicy, is_tcp: bool
) -> Entry | Refusal:
    """Return the entry for an upstream's `answer` to `query`, or why there is none.

    `now` is in seconds of the store's clock; `is_tcp` says how the client came. An entry with
    `truncated` set belongs under the truncated key.
    """
    layout = lay_out(answer, query.question)
    if layout is None:
        return Refusal.UNDECODABLE
    truncated = layout.header[1] & _TC != 0
    if truncated and (is_tcp or not policy.truncated_ttl):
        return Refusal.TRUNCATED
    kind, lifetime = classify(layout, policy)
    if not lifetime:
        return Refusal.UNCACHEABLE
    if truncated:
        lifetime = policy.truncated_ttl
    return entry_of(
        layout,
        now,
        now + lifetime,
        kind,
        layout.opt is not None and client_subnet(query) not in (b"", None),
    )


def entry_of(layout: Layout, stored: float, expires: float, kind: int, with_subnet: bool) -> Entry:
    """Return an entry for an examined answer; `with_subnet` says that the query had the option."""
    return Entry(
        layout.wire,
        stored,
        expires,
        kind,
        layout.question_end,
        layout.body_end,
        layout.ttl_offsets(),
        b"" if layout.opt is None else options_to_serve(layout.wire, layout.opt, with_subnet),
    )


def classify(layout: Layout, policy: CachePolicy) -> tuple[Kind, int]:
    """Return what an answer is and its lifetime in seconds, 0 when it is not to be stored.

    Chapter 40 section 6.3; the negative lifetime is also bounded by the SOA's MINIMUM (RFC 2308
    section 5), and a TTL with the top bit set counts as 0 (RFC 2181 section 8).
    """
    if layout.extended_rcode_bits:
        return Kind.POSITIVE, 0
    header = layout.header
    rcode = header[1] & 0xF
    if rcode == _SERVFAIL:
        return Kind.SERVFAIL, policy.servfail_ttl
    if rcode == _NXDOMAIN:
        kind = Kind.NXDOMAIN
    elif rcode == _NOERROR and not header[3]:
        kind = Kind.NODATA
    else:
        kind = Kind.POSITIVE
    if kind != Kind.POSITIVE and not policy.negative:
        return kind, 0
    lifetime = _minimum_ttl(layout)
    if lifetime is None:
        if kind != Kind.POSITIVE:
            return kind, _NEGATIVE_TTL_WITHOUT_RECORDS
        # a server that cannot or will not answer one client may well answer the next
        if rcode in (_FORMERR, _NOTIMP, _REFUSED):
            return kind, 0
        return kind, _OTHER_TTL_WITHOUT_RECORDS
    return kind, lifetime


def _minimum_ttl(layout: Layout) -> int | None:
    """The smallest lifetime in answer and authority; None when both are empty."""
    wire = layout.wire
    header = layout.header
    answers = header[3]
    counted = answers + header[4]
    lifetime = None
    for index, (_, fixed, end, rtype) in enumerate(layout.spans):
        if rtype in (_TYPE_TKEY, _TYPE_TSIG) or (rtype == _TYPE_SIG and index >= counted):
            # a transaction signature makes sense to one client only
            return 0
        if index >= counted:
            continue
        ttl = unpack_fixed(wire, fixed)[2]
        if ttl >= _TOP_BIT:
            return 0
        if rtype == _TYPE_SOA and index >= answers:
            minimum = int.from_bytes(wire[end - 4 : end], "big")
            if minimum >= _TOP_BIT:
                return 0
            ttl = min(ttl, minimum)
        if lifetime is None or ttl < lifetime:
            lifetime = ttl
    return lifetime
