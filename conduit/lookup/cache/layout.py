"""Finds the places in an upstream answer that serving needs, once, when the answer is stored.

The result always has one question, then the records, then at most one OPT at the end. An answer
that is arranged otherwise (no question, OPT between records, a name that leans on the header) is
written anew; its records stay the same.
"""

from __future__ import annotations

import re
from typing import Final

from conduit.lookup.cache.encode import encode_records, leans_on_header
from conduit.wire import fold, read_name
from conduit.wire.structure import (
    HEADER_LENGTH,
    MALFORMED,
    NO_OPT,
    RecordSpan,
    skip_questions,
    unpack_fixed,
    unpack_header,
    walk_records,
)

_QR: Final = 0x8000
_OPCODE: Final = 0x7800
_TYPE_OPT: Final = 41

_OPTION_CLIENT_SUBNET: Final = 8
_OPTION_EXTENDED_ERROR: Final = 15

# two octets that may be a pointer into the header, whose id and flags differ in each reply
_POINTER_TO_HEADER: Final = re.compile(rb"\xc0[\x00-\x0b]")


class Layout:
    """A decoded answer. Spans and offsets are octets from the start of `wire`."""

    __slots__ = (
        "body_end",
        "extended_rcode_bits",
        "header",
        "opt",
        "question_end",
        "spans",
        "wire",
    )

    def __init__(
        self,
        wire: bytes,
        header: tuple[int, ...],
        question_end: int,
        body_end: int,
        spans: list[RecordSpan],
        opt: RecordSpan | None,
        extended_rcode_bits: int,
    ) -> None:
        self.wire = wire
        #: the six 16-bit words of the header
        self.header = header
        self.question_end = question_end
        #: offset after the last record that is no OPT
        self.body_end = body_end
        #: the records in order, without the OPT
        self.spans = spans
        self.opt = opt
        #: upper eight bits of the rcode (RFC 6891 section 6.1.3)
        self.extended_rcode_bits = extended_rcode_bits

    def ttl_offsets(self) -> tuple[int, ...]:
        """Offsets of the TTL fields, counted from the end of the question."""
        shift = 4 - self.question_end
        return tuple([span[1] + shift for span in self.spans])


def lay_out(answer: bytes, question: bytes) -> Layout | None:
    """Examine an upstream answer to `question` (uncompressed name, type and class).

    None when it is no well-formed reply with opcode QUERY, speaks of another question, or cannot
    be arranged within 65,535 octets. Octets behind the last record are left out.
    """
    if len(answer) < HEADER_LENGTH:
        return None
    header = unpack_header(answer)
    if not header[1] & _QR or header[1] & _OPCODE:
        return None
    if answer.startswith(question, HEADER_LENGTH):
        question_end = HEADER_LENGTH + len(question)
        plain = header[2] == 1
        if not header[2]:
            # without a question those octets belong to the first record
            question_end = HEADER_LENGTH
        elif not plain:
            question_end = skip_questions(answer, header[2])
    else:
        plain = False
        question_end = skip_questions(answer, header[2])
        if header[2]:
            found = read_name(answer, HEADER_LENGTH)
            if (
                found is None
                or fold(found[0]) != fold(question[:-4])
                or answer[found[1] : found[1] + 4] != question[-4:]
            ):
                return None
            plain = header[2] == 1 and found[1] + 4 == HEADER_LENGTH + len(question)
    if question_end < 0:
        return None
    spans: list[RecordSpan] = []
    index = walk_records(answer, question_end, header, spans)
    if index == MALFORMED:
        return None
    opt: RecordSpan | None = None
    extended_rcode_bits = 0
    if index != NO_OPT:
        plain = plain and index == len(spans) - 1
        opt = spans.pop(index)
        extended_rcode_bits = answer[opt[1] + 4]
    # a record of type OPT outside the additional section has no TTL to lower
    if _TYPE_OPT in [span[3] for span in spans]:
        return None
    if not plain or (
        _POINTER_TO_HEADER.search(answer, question_end) and leans_on_header(answer, spans)
    ):
        return _arrange(answer, header, question, spans, opt, extended_rcode_bits)
    body_end = spans[-1][2] if spans else question_end
    end = opt[2] if opt is not None else body_end
    return Layout(
        answer if end == len(answer) else answer[:end],
        header,
        question_end,
        body_end,
        spans,
        opt,
        extended_rcode_bits,
    )


def _arrange(
    answer: bytes,
    header: tuple[int, ...],
    question: bytes,
    spans: list[RecordSpan],
    opt: RecordSpan | None,
    extended_rcode_bits: int,
) -> Layout | None:
    question_end = HEADER_LENGTH + len(question)
    body = encode_records(answer, spans, question_end, question)
    if body is None:
        return None
    opt_octets = answer[opt[0] : opt[2]] if opt is not None else b""
    wire = b"".join((answer[:4], b"\0\1", answer[6:12], question, body.octets, opt_octets))
    if len(wire) > 0xFFFF:
        return None
    header = unpack_header(wire)
    arranged: list[RecordSpan] = []
    if walk_records(wire, question_end, header, arranged) == MALFORMED:
        return None
    new_opt = arranged.pop() if opt is not None else None
    body_end = question_end + len(body.octets)
    return Layout(wire, header, question_end, body_end, arranged, new_opt, extended_rcode_bits)


def options_to_serve(wire: bytes, opt: RecordSpan, with_subnet: bool) -> bytes:
    """Return the EDNS options that speak of the answer itself, ready for a reply's OPT.

    These are Extended DNS Errors (RFC 8914) and, `with_subnet` (the query carried the option, so
    it is part of the key), the client subnet with the upstream's scope (RFC 7871). Cookies,
    server ids and the like belong to one exchange.
    """
    position = opt[1] + 10
    _, _, _, length = unpack_fixed(wire, opt[1])
    end = position + length
    kept = []
    while position < end:
        code = wire[position] << 8 | wire[position + 1]
        after = position + 4 + (wire[position + 2] << 8 | wire[position + 3])
        if code == _OPTION_EXTENDED_ERROR or (code == _OPTION_CLIENT_SUBNET and with_subnet):
            kept.append(wire[position:after])
        position = after
    return b"".join(kept)
