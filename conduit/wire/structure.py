"""Walks the sections of a DNS message and checks their structure: the one set of decode rules.

Query parse, reply decoding, truncation and the record reader all use this walk, so they agree on
what is well formed (chapter 20 section 8, table of `wire_error`). Nothing here raises.
"""

from __future__ import annotations

import struct
from typing import Final

from conduit.wire.name import MAX_LABEL_LENGTH, MAX_NAME_LENGTH, skip_name

HEADER_LENGTH: Final = 12
TYPE_OPT: Final = 41
OPCODE_UPDATE: Final = 5

#: Result of `walk_records` for a message that does not decode.
MALFORMED: Final = -2
#: Result of `walk_records` for a message without OPT.
NO_OPT: Final = -1

#: A record's place: offset of its owner, offset of its TYPE field, offset after it, type number.
RecordSpan = tuple[int, int, int, int]

unpack_header: Final = struct.Struct("!6H").unpack_from
unpack_fixed: Final = struct.Struct("!HHIH").unpack_from

_TYPE_A: Final = 1
_TYPE_AAAA: Final = 28
_TYPE_NAPTR: Final = 35
_ANY_TAIL: Final = -1

# Types with names inside RDATA: octets before the names, number of names, octets after them.
# The types of RFC 3597 section 4 (A6 apart) and RFC 4034.
_NAMES_IN_RDATA: Final[dict[int, tuple[int, int, int]]] = {
    2: (0, 1, 0),  # NS
    3: (0, 1, 0),  # MD
    4: (0, 1, 0),  # MF
    5: (0, 1, 0),  # CNAME
    6: (0, 2, 20),  # SOA
    7: (0, 1, 0),  # MB
    8: (0, 1, 0),  # MG
    9: (0, 1, 0),  # MR
    12: (0, 1, 0),  # PTR
    14: (0, 2, 0),  # MINFO
    15: (2, 1, 0),  # MX
    17: (0, 2, 0),  # RP
    18: (2, 1, 0),  # AFSDB
    21: (2, 1, 0),  # RT
    24: (18, 1, _ANY_TAIL),  # SIG
    26: (2, 2, 0),  # PX
    30: (0, 1, _ANY_TAIL),  # NXT
    33: (6, 1, 0),  # SRV
    36: (2, 1, 0),  # KX
    39: (0, 1, 0),  # DNAME
    46: (18, 1, _ANY_TAIL),  # RRSIG
    47: (0, 1, _ANY_TAIL),  # NSEC
}


def skip_questions(wire: bytes, count: int) -> int:
    """Offset after `count` questions that begin behind the header, -1 when malformed."""
    end = len(wire)
    position = HEADER_LENGTH
    while count:
        position = skip_name(wire, position)
        if position < 0:
            return -1
        position += 4
        if position > end:
            return -1
        count -= 1
    return position


def options_well_formed(wire: bytes, position: int, end: int) -> bool:
    """Whether the octets up to `end` are whole EDNS options (RFC 6891 section 6.1.2)."""
    while position < end:
        if position + 4 > end:
            return False
        position += 4 + (wire[position + 2] << 8 | wire[position + 3])
    return position == end


def walk_records(
    wire: bytes,
    position: int,
    header: tuple[int, ...],
    records: list[RecordSpan],
    known: set[int] | None = None,
) -> int:
    """Walk the three record sections from `position`, the offset after the questions.

    `header` holds the six header words. Appends one span for each record to `records` and returns
    the index of the OPT of the additional section, `NO_OPT`, or `MALFORMED`. `known` may hold
    offsets where good names are known to start; the walk adds to it.
    """
    _, flags, qdcount, ancount, nscount, arcount = header
    end = len(wire)
    first = position
    total = ancount + nscount + arcount
    if not total:
        return NO_OPT
    first_additional = ancount + nscount
    is_update = (flags >> 11) & 0xF == OPCODE_UPDATE
    opt = NO_OPT
    # pointer targets known to be good names; the first question is one
    if known is None:
        known = {HEADER_LENGTH} if qdcount else set()
    for index in range(total):
        owner = position
        # a root owner and the fixed fields are the least that a record has
        if owner + 11 > end:
            return MALFORMED
        octet = wire[owner]
        if octet == 0:
            fixed = owner + 1
        elif octet >= 0xC0:
            target = (octet & 0x3F) << 8 | wire[owner + 1]
            fixed = owner + 2
            if target not in known:
                if skip_name(wire, owner) < 0:
                    return MALFORMED
                known.add(target)
        else:
            fixed = skip_name(wire, owner)
            if fixed < 0:
                return MALFORMED
        rdata = fixed + 10
        if rdata > end:
            return MALFORMED
        rtype, _, _, rdlength = unpack_fixed(wire, fixed)
        position = rdata + rdlength
        if position > end:
            return MALFORMED
        if rtype == _TYPE_A:
            if rdlength != 4 and (rdlength or not is_update):
                return MALFORMED
        elif rtype == _TYPE_AAAA:
            if rdlength != 16 and (rdlength or not is_update):
                return MALFORMED
        elif rtype == TYPE_OPT:
            if rdlength and not options_well_formed(wire, rdata, position):
                return MALFORMED
            if index >= first_additional:
                # the owner is one zero octet, not a pointer to one (RFC 6891 section 6.1.2)
                if opt >= 0 or octet:
                    return MALFORMED
                opt = index
        # empty RDATA has a meaning in updates (RFC 2136 sections 2.4 and 2.5)
        elif (rdlength or not is_update) and not _names_well_formed(
            wire, rtype, rdata, position, known, first
        ):
            return MALFORMED
        records.append((owner, fixed, position, rtype))
    return opt


def _names_well_formed(
    wire: bytes, rtype: int, rdata: int, end: int, known: set[int], first: int
) -> bool:
    """Whether the names inside this RDATA are good and the parts fill it exactly.

    `first` is the offset of the first record: all before it is header and question.
    """
    shape = _NAMES_IN_RDATA.get(rtype)
    if shape is None:
        return rtype != _TYPE_NAPTR or _naptr_well_formed(wire, rdata, end)
    before, names, tail = shape
    position = rdata + before
    if names == 1 and not tail and position < end:
        # one label and a pointer into the question is what servers send most
        octet = wire[position]
        length = octet + 1 if octet <= MAX_LABEL_LENGTH else 0
        position += length
        if position + 2 == end and wire[position] >= 0xC0:
            target = (wire[position] & 0x3F) << 8 | wire[position + 1]
            # a name that starts in the question ends in it
            if target in known and target < first <= target + MAX_NAME_LENGTH - length:
                # the addresses of this name often follow
                known.add(rdata + before)
                return True
        position = rdata + before
    while names:
        if position >= end:
            return False
        position = skip_name(wire, position)
        if position < 0:
            return False
        names -= 1
    if tail < 0:
        return position <= end
    return position + tail == end


def _naptr_well_formed(wire: bytes, rdata: int, end: int) -> bool:
    """Order, preference, three character strings and a name (RFC 3403 section 4.1)."""
    position = rdata + 4
    for _ in range(3):
        if position >= end:
            return False
        position += 1 + wire[position]
    return position < end and skip_name(wire, position) == end
