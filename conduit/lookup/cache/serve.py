"""Makes the reply to one client from a stored answer (chapter 40 section 8).

The usual hit is slices of the stored message around the client's own question, with lowered TTLs.
Records are written anew only when the client's question is spelt or named otherwise than the
stored one, and when RRsets rotate.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from conduit.lookup.cache.encode import Body, encode_records, relocate
from conduit.lookup.cache.entry import Entry
from conduit.wire import Query, fold, read_name
from conduit.wire.structure import (
    HEADER_LENGTH,
    RecordSpan,
    skip_questions,
    unpack_header,
    walk_records,
)
from conduit.wire.synthesize import PAYLOAD_SIZE

_RD_CD: Final = 0x0100 | 0x0010
_AD: Final = 0x0020
_DO: Final = 0x8000
_KEEP: Final = 0xFFFF & ~_RD_CD
_KEEP_WITHOUT_AD: Final = _KEEP & ~_AD
_TOP_BIT: Final = 0x80000000
_TYPE_OPT: Final = 41

_pack_header: Final = struct.Struct("!6H").pack
_pack_opt: Final = struct.Struct("!BHHIH").pack
_TTL: Final = struct.Struct("!I")
_read_ttl: Final = _TTL.unpack_from
_write_ttl: Final = _TTL.pack_into

# version 0, without options, DO clear and set
_OPT_PLAIN: Final = _pack_opt(0, _TYPE_OPT, PAYLOAD_SIZE, 0, 0)
_OPT_DO: Final = _pack_opt(0, _TYPE_OPT, PAYLOAD_SIZE, _DO, 0)


def serve(
    entry: Entry, query: Query, now: float, randrange: Callable[[int], int] | None = None
) -> bytes | None:
    """Return the reply to `query` from `entry`, `now` in seconds of the entry's clock.

    The query's name is that of the entry or a name below it. `randrange` (as `random.randrange`)
    turns on rotation of the answer's RRsets. None when no message within 65,535 octets can be
    made, which only a name below the entry's can cause.
    """
    wire = entry.wire
    question = query.question
    start = entry.question_end
    _, flags, _, answers, authorities, additionals = unpack_header(wire)
    if randrange is not None and answers > 1:
        body = _rotated(entry, question, randrange)
    else:
        body = None
    if body is not None:
        octets, offsets = body.octets, body.ttl_offsets
    elif wire.startswith(question, HEADER_LENGTH):
        octets, offsets = wire[start : entry.body_end], entry.ttl_offsets
    else:
        shifted = _detached(entry, len(question) + HEADER_LENGTH - start)
        if shifted is None:
            return None
        octets, offsets = shifted
    age = int(now - entry.stored)
    if age > 0 and offsets:
        octets = lower_ttls(octets, offsets, age)
    client = query.flags
    if client & _AD or query.edns_flags & _DO:
        flags = flags & _KEEP | client & _RD_CD
    else:
        flags = flags & _KEEP_WITHOUT_AD | client & _RD_CD
    # the stored OPT, if any, stands behind the body
    if entry.body_end < len(wire):
        additionals -= 1
    if not query.has_opt:
        header = _pack_header(query.id, flags, 1, answers, authorities, additionals)
        return b"".join((header, question, octets))
    header = _pack_header(query.id, flags, 1, answers, authorities, additionals + 1)
    if entry.options:
        opt = _pack_opt(0, _TYPE_OPT, PAYLOAD_SIZE, query.edns_flags & _DO, len(entry.options))
        return b"".join((header, question, octets, opt, entry.options))
    opt = _OPT_DO if query.edns_flags & _DO else _OPT_PLAIN
    return b"".join((header, question, octets, opt))


def lower_ttls(octets: bytes, offsets: tuple[int, ...], age: int) -> bytes:
    """Return `octets` with the TTL fields at `offsets` lowered by `age` seconds, never below 0.

    A TTL with the top bit set counts as 0 (RFC 2181 section 8).
    """
    patched = bytearray(octets)
    for offset in offsets:
        ttl = _read_ttl(patched, offset)[0]
        _write_ttl(patched, offset, ttl - age if age < ttl < _TOP_BIT else 0)
    return bytes(patched)


def _spans(wire: bytes) -> list[RecordSpan]:
    """The records of a stored message, without its OPT."""
    header = unpack_header(wire)
    spans: list[RecordSpan] = []
    walk_records(wire, skip_questions(wire, header[2]), header, spans)
    return [span for span in spans if span[3] != _TYPE_OPT]


def _detached(entry: Entry, shift: int) -> tuple[bytes, tuple[int, ...]] | None:
    """The records for a question of other spelling, or of a length that differs by `shift`."""
    body = entry.detached
    if body is None:
        wire = entry.wire
        body = encode_records(wire, _spans(wire), entry.question_end)
        if body is None:
            # too long without leaning on the question; the spelling of owner names gives way
            body = Body(wire[entry.question_end : entry.body_end], entry.ttl_offsets, ())
            return None if shift else (body.octets, body.ttl_offsets)
        entry.detached = body
    if not shift:
        return body.octets, body.ttl_offsets
    if HEADER_LENGTH + shift + entry.question_end + len(body.octets) > 0xFFFF:
        return None
    octets = relocate(body, shift)
    return None if octets is None else (octets, body.ttl_offsets)


def _rotated(entry: Entry, question: bytes, randrange: Callable[[int], int]) -> Body | None:
    """The records with each RRset of the answer turned by a random offset; None when too long."""
    wire = entry.wire
    spans = _spans(wire)
    answers = wire[6] << 8 | wire[7]
    groups: dict[tuple[bytes, int], list[RecordSpan]] = {}
    for span in spans[:answers]:
        found = read_name(wire, span[0])
        owner = fold(found[0]) if found is not None else b""
        groups.setdefault((owner, span[3]), []).append(span)
    order: list[RecordSpan] = []
    for members in groups.values():
        turn = randrange(len(members)) if len(members) > 1 else 0
        order += members[turn:]
        order += members[:turn]
    order += spans[answers:]
    base = HEADER_LENGTH + len(question)
    if wire.startswith(question, HEADER_LENGTH):
        return encode_records(wire, order, base, question)
    return encode_records(wire, order, base)
