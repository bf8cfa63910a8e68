"""Reads and rewrites single facts of a message: id, rcode, TC, and whether a reply belongs here."""

from __future__ import annotations

import struct
from typing import Final

from conduit.wire.name import fold, read_name
from conduit.wire.structure import (
    HEADER_LENGTH,
    MALFORMED,
    RecordSpan,
    skip_questions,
    unpack_header,
    walk_records,
)

_QR: Final = 0x8000
_unpack_start: Final = struct.Struct("!3H").unpack_from


def message_id(wire: bytes) -> int:
    """The 16-bit message id; of fewer than two octets, what is there."""
    return int.from_bytes(wire[:2], "big")


def with_id(wire: bytes, id: int) -> bytes:
    """`wire` with its id replaced and every other octet kept (chapter 20 section 12.2).

    `id` must be within 0-65535, else OverflowError.
    """
    return id.to_bytes(2, "big") + wire[2:]


def rcode(wire: bytes) -> int:
    """The 4-bit RCODE of the header; 0 when the message is shorter than that field."""
    return wire[3] & 0xF if len(wire) > 3 else 0


def is_truncated(wire: bytes) -> bool:
    """Whether TC is set; False when the message is shorter than that field."""
    return len(wire) > 2 and wire[2] & 0x02 != 0


def reply_matches(reply: bytes, expected_id: int, question: bytes) -> bool:
    """Whether `reply` may answer the query with this id and question (chapter 20 section 12.3).

    `question` is the uncompressed name, type and class that were sent. Names compare without
    regard to ASCII case. A reply without questions is accepted (some servers send it with an
    error); of several questions the first counts.
    """
    if len(reply) < HEADER_LENGTH:
        return False
    reply_id, flags, qdcount = _unpack_start(reply)
    if reply_id != expected_id or flags < _QR:
        return False
    if not qdcount or reply.startswith(question, HEADER_LENGTH):
        return True
    found = read_name(reply, HEADER_LENGTH)
    if found is None:
        return False
    name, end = found
    return (
        reply[end : end + 4] == question[-4:]
        and len(name) + 4 == len(question)
        and fold(name) == fold(question[:-4])
    )


def message_decodes(wire: bytes, question: bytes = b"") -> bool:
    """Whether the whole message is well formed, with any opcode (chapter 20 section 8, rule 2).

    `question` is an uncompressed well-formed question; a message that repeats it octet for octet
    is walked from behind it.
    """
    if len(wire) < HEADER_LENGTH:
        return False
    header = unpack_header(wire)
    if question and header[2] == 1 and wire.startswith(question, HEADER_LENGTH):
        if _is_usual(wire, HEADER_LENGTH + len(question), header):
            return True
        known = set()
        position = HEADER_LENGTH
        while octet := wire[position]:
            known.add(position)
            position += octet + 1
        known.add(position)
        return walk_records(wire, position + 5, header, [], known) != MALFORMED
    position = skip_questions(wire, header[2])
    return position >= 0 and walk_records(wire, position, header, []) != MALFORMED


# an address record of the name asked for, up to its TTL; and a plain OPT up to its payload size
_ADDRESS: Final = {b"\xc0\x0c\0\x01\0\x01": b"\0\x04", b"\xc0\x0c\0\x1c\0\x01": b"\0\x10"}
_OPT_START: Final = b"\0\0\x29"


def _is_usual(wire: bytes, position: int, header: tuple[int, ...]) -> bool:
    """Whether the records from `position` are addresses of the name asked for and a plain OPT.

    Most answers are; True means well formed, False that they have to be walked.
    """
    if header[4]:
        return False
    for _ in range(header[3]):
        length = _ADDRESS.get(wire[position : position + 6])
        if length is None or wire[position + 10 : position + 12] != length:
            return False
        position += 12 + length[1]
    if header[5]:
        if header[5] > 1 or not wire.startswith(_OPT_START, position):
            return False
        if wire[position + 9 : position + 11] != b"\0\0":
            return False
        position += 11
    # what follows the last record is not read by anybody, so it is no fault
    return position <= len(wire)


def extended_rcode(wire: bytes) -> int:
    """The 12-bit rcode: upper bits from the OPT (RFC 6891 section 6.1.3), if the message has one.

    The 4-bit RCODE for a message without OPT or one that does not decode.
    """
    low = rcode(wire)
    if len(wire) < HEADER_LENGTH:
        return low
    header = unpack_header(wire)
    if not header[5]:
        return low
    position = skip_questions(wire, header[2])
    if position < 0:
        return low
    records: list[RecordSpan] = []
    opt = walk_records(wire, position, header, records)
    if opt < 0:
        return low
    return wire[records[opt][1] + 4] << 4 | low
