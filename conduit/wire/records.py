"""Lists the records of a message with their offsets, for the cache and other later readers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from conduit.wire.name import read_name
from conduit.wire.structure import (
    HEADER_LENGTH,
    MALFORMED,
    RecordSpan,
    skip_questions,
    unpack_fixed,
    unpack_header,
    walk_records,
)


class Section(IntEnum):
    """Where a record stands (RFC 1035 section 4.1)."""

    ANSWER = 1
    AUTHORITY = 2
    ADDITIONAL = 3


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a message; offsets are octets from the start of the message."""

    section: Section
    #: uncompressed wire name, letter case kept
    owner: bytes
    rtype: int
    rclass: int
    #: seconds, the 32-bit field as it stands; for an OPT, its extended rcode, version and flags
    ttl: int
    #: of the owner name, the record's first octet
    offset: int
    type_offset: int
    ttl_offset: int
    rdata_offset: int
    rdlength: int
    #: offset after the record
    end: int


def iter_records(wire: bytes) -> list[Record] | None:
    """The records of all three sections in order; None when the message does not decode."""
    if len(wire) < HEADER_LENGTH:
        return None
    header = unpack_header(wire)
    position = skip_questions(wire, header[2])
    spans: list[RecordSpan] = []
    if position < 0 or walk_records(wire, position, header, spans) == MALFORMED:
        return None
    first_authority = header[3]
    first_additional = first_authority + header[4]
    records = []
    for index, (offset, type_offset, end, rtype) in enumerate(spans):
        owner = read_name(wire, offset)
        if owner is None:
            return None
        _, rclass, ttl, rdlength = unpack_fixed(wire, type_offset)
        if index < first_authority:
            section = Section.ANSWER
        elif index < first_additional:
            section = Section.AUTHORITY
        else:
            section = Section.ADDITIONAL
        records.append(
            Record(
                section=section,
                owner=owner[0],
                rtype=rtype,
                rclass=rclass,
                ttl=ttl,
                offset=offset,
                type_offset=type_offset,
                ttl_offset=type_offset + 4,
                rdata_offset=type_offset + 10,
                rdlength=rdlength,
                end=end,
            )
        )
    return records
