"""Turns the octets of a client message into a `Query`, or names the reason for its rejection.

The usual shape (one question without pointers, at most one OPT and nothing else) is read straight
from the octets; every other shape takes the general walk of `structure`, with the same outcome.
"""

from __future__ import annotations

from typing import Final

from conduit.wire.name import MAX_LABEL_LENGTH, MAX_NAME_LENGTH, fold, name_to_text, read_name
from conduit.wire.reject import RejectReason
from conduit.wire.structure import (
    HEADER_LENGTH,
    MALFORMED,
    TYPE_OPT,
    RecordSpan,
    options_well_formed,
    skip_questions,
    unpack_fixed,
    unpack_header,
    walk_records,
)

_QR: Final = 0x8000
_DO: Final = 0x8000
_MIN_UDP_PAYLOAD: Final = 512
# QUERY, STATUS, NOTIFY, UPDATE
_OPCODES: Final = frozenset({0, 2, 4, 5})

_WIRE_ERROR: Final = RejectReason.WIRE_ERROR


class Query:
    """One well-formed client message with exactly one question. Treat it as immutable."""

    __slots__ = (
        "_option_codes",
        "_qname_folded",
        "_qname_text",
        "edns_flags",
        "edns_version",
        "flags",
        "has_opt",
        "id",
        "opcode",
        "opt_offset",
        "qclass",
        "qname",
        "qtype",
        "question",
        "question_end",
        "udp_payload_size",
        "wire",
    )

    def __init__(
        self,
        wire: bytes,
        id: int,
        flags: int,
        qname: bytes,
        question: bytes,
        question_end: int,
        opt_offset: int,
    ) -> None:
        """Read the remaining fields from `wire`, which has been checked already.

        Types and units: `question_end` and `opt_offset` are octet offsets into `wire`
        (`opt_offset` -1 without an OPT); `question` is the uncompressed name, type and class.
        """
        #: the message as received, trailing octets included
        self.wire = wire
        self.id = id
        #: second 16-bit word of the header
        self.flags = flags
        self.opcode = (flags >> 11) & 0xF
        #: uncompressed wire name, letter case as sent
        self.qname = qname
        self.question = question
        self.qtype = question[-4] << 8 | question[-3]
        self.qclass = question[-2] << 8 | question[-1]
        self.question_end = question_end
        #: offset of the OPT's owner octet, -1 without OPT
        self.opt_offset = opt_offset
        if opt_offset < 0:
            self.has_opt = False
            #: octets, at least 512; None without OPT
            self.udp_payload_size: int | None = None
            self.edns_version = 0
            #: the DO bit and the reserved Z bits
            self.edns_flags = 0
        else:
            self.has_opt = True
            _, size, ttl, _ = unpack_fixed(wire, opt_offset + 1)
            self.udp_payload_size = size if size > _MIN_UDP_PAYLOAD else _MIN_UDP_PAYLOAD
            self.edns_version = (ttl >> 16) & 0xFF
            self.edns_flags = ttl & 0xFFFF
        self._qname_text: str | None = None
        self._qname_folded: bytes | None = None
        self._option_codes: tuple[int, ...] | None = None

    @property
    def dnssec_ok(self) -> bool:
        """Whether the client set DO (RFC 3225 section 3)."""
        return self.edns_flags & _DO != 0

    @property
    def qname_text(self) -> str:
        """Presentation form of the name, case as sent (chapter 30 section 3.3)."""
        text = self._qname_text
        if text is None:
            text = self._qname_text = name_to_text(self.qname)
        return text

    @property
    def qname_folded(self) -> bytes:
        """The wire name in ASCII lower case, for cache keys and comparisons."""
        folded = self._qname_folded
        if folded is None:
            folded = self._qname_folded = fold(self.qname)
        return folded

    @property
    def option_codes(self) -> tuple[int, ...]:
        """Codes of the client's EDNS options, sorted and without duplicates."""
        codes = self._option_codes
        if codes is None:
            codes = self._option_codes = self._read_option_codes()
        return codes

    def _read_option_codes(self) -> tuple[int, ...]:
        if self.opt_offset < 0:
            return ()
        wire = self.wire
        position = self.opt_offset + 11
        end = position + (wire[position - 2] << 8 | wire[position - 1])
        codes = set()
        while position < end:
            codes.add(wire[position] << 8 | wire[position + 1])
            position += 4 + (wire[position + 2] << 8 | wire[position + 3])
        return tuple(sorted(codes))

    def __repr__(self) -> str:
        return f"<Query id={self.id} {self.qname_text} type={self.qtype} class={self.qclass}>"


def parse_query(data: bytes) -> Query | RejectReason:
    """Parse one client message (chapter 20 section 8).

    `data` is a whole datagram or one unframed TCP message. Octets after the last record are
    accepted and stay in `Query.wire`. Never raises: a bad message gives its reason.
    """
    length = len(data)
    if length < HEADER_LENGTH:
        return _WIRE_ERROR if length else RejectReason.EMPTY
    header = unpack_header(data)
    flags = header[1]
    if (flags >> 11) & 0xF not in _OPCODES:
        return _WIRE_ERROR
    # QR clear, one question, no answers, no authority, at most one additional record
    if flags < _QR and header[2] == 1 and not header[3] and not header[4] and header[5] <= 1:
        position = HEADER_LENGTH
        while position < length:
            octet = data[position]
            if octet == 0:
                break
            if octet > MAX_LABEL_LENGTH:
                return _parse_general(data, header)
            position += octet + 1
        question_end = position + 5
        if question_end > length or question_end > HEADER_LENGTH + MAX_NAME_LENGTH + 4:
            return _WIRE_ERROR
        opt_offset = -1
        if header[5]:
            rdata = question_end + 11
            if rdata > length or data[question_end]:
                return _parse_general(data, header)
            rtype, _, _, rdlength = unpack_fixed(data, question_end + 1)
            if rtype != TYPE_OPT:
                return _parse_general(data, header)
            if rdlength and (
                rdata + rdlength > length or not options_well_formed(data, rdata, rdata + rdlength)
            ):
                return _WIRE_ERROR
            opt_offset = question_end
        return Query(
            data,
            header[0],
            flags,
            data[HEADER_LENGTH : position + 1],
            data[HEADER_LENGTH:question_end],
            question_end,
            opt_offset,
        )
    return _parse_general(data, header)


def _parse_general(data: bytes, header: tuple[int, ...]) -> Query | RejectReason:
    """The walk of every section, for messages of any shape."""
    question_end = skip_questions(data, header[2])
    if question_end < 0:
        return _WIRE_ERROR
    records: list[RecordSpan] = []
    opt = walk_records(data, question_end, header, records)
    if opt == MALFORMED:
        return _WIRE_ERROR
    if header[1] & _QR:
        return RejectReason.NOT_QUERY
    if header[2] != 1:
        return RejectReason.MULTI_QUESTION if header[2] else RejectReason.NO_QUESTION
    found = read_name(data, HEADER_LENGTH)
    if found is None:
        return _WIRE_ERROR
    qname, name_end = found
    return Query(
        data,
        header[0],
        header[1],
        qname,
        qname + data[name_end:question_end],
        question_end,
        records[opt][0] if opt >= 0 else -1,
    )
