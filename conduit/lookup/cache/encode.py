"""Writes the records of a message anew where its octets cannot be used as they stand.

Names in an upstream answer are mostly pointers into its question. A client that spells the
question in another letter case, or asks for a name below a cached NXDOMAIN, needs records that do
not lean on that question; rotation needs them in another order. Everything else is slicing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from conduit.wire import read_name, skip_name
from conduit.wire.structure import HEADER_LENGTH, RecordSpan

_MAX_POINTER_TARGET: Final = 0x3FFF
_ANY_TAIL: Final = -1
_NAPTR: Final = 35

# RDATA with names that may arrive compressed (RFC 3597 section 4): octets before the names, number
# of names, octets after them, and whether a name may be compressed when written (RFC 1035 types).
_NAMES: Final[dict[int, tuple[int, int, int, bool]]] = {
    2: (0, 1, 0, True),  # NS
    3: (0, 1, 0, True),  # MD
    4: (0, 1, 0, True),  # MF
    5: (0, 1, 0, True),  # CNAME
    6: (0, 2, 20, True),  # SOA
    7: (0, 1, 0, True),  # MB
    8: (0, 1, 0, True),  # MG
    9: (0, 1, 0, True),  # MR
    12: (0, 1, 0, True),  # PTR
    14: (0, 2, 0, True),  # MINFO
    15: (2, 1, 0, True),  # MX
    17: (0, 2, 0, False),  # RP
    18: (2, 1, 0, False),  # AFSDB
    21: (2, 1, 0, False),  # RT
    24: (18, 1, _ANY_TAIL, False),  # SIG
    26: (2, 2, 0, False),  # PX
    30: (0, 1, _ANY_TAIL, False),  # NXT
    33: (6, 1, 0, False),  # SRV
    36: (2, 1, 0, False),  # KX
    39: (0, 1, 0, False),  # DNAME
    46: (18, 1, _ANY_TAIL, False),  # RRSIG
    47: (0, 1, _ANY_TAIL, False),  # NSEC
}


class Body:
    """Encoded records. Offsets count from the first octet of `octets`."""

    __slots__ = ("octets", "pointers", "ttl_offsets")

    def __init__(
        self, octets: bytes, ttl_offsets: tuple[int, ...], pointers: tuple[int, ...]
    ) -> None:
        self.octets = octets
        self.ttl_offsets = ttl_offsets
        #: where compression pointers stand
        self.pointers = pointers


class _Writer:
    """Records behind a question of known length, names compressed (RFC 1035 section 4.1.4)."""

    __slots__ = ("_base", "_known", "out", "pointers")

    def __init__(self, base: int, question: bytes | None) -> None:
        self._base = base
        self._known: dict[bytes, int] = {}
        self.out = bytearray()
        self.pointers: list[int] = []
        if question is not None:
            position = 0
            while question[position]:
                self._known[question[position:-4]] = HEADER_LENGTH + position
                position += question[position] + 1

    def name(self, name: bytes, compress: bool) -> None:
        out = self.out
        known = self._known
        position = 0
        while name[position]:
            suffix = name[position:]
            if compress:
                target = known.get(suffix)
                if target is not None:
                    self.pointers.append(len(out))
                    out += (0xC000 | target).to_bytes(2, "big")
                    return
            here = self._base + len(out)
            if here <= _MAX_POINTER_TARGET:
                known.setdefault(suffix, here)
            after = position + name[position] + 1
            out += name[position:after]
            position = after
        out.append(0)


def encode_records(
    wire: bytes, spans: Iterable[RecordSpan], base: int, question: bytes | None = None
) -> Body | None:
    """Return the records of `spans` (of the well-formed message `wire`) in the given order.

    `base` is the offset in the new message at which the records will stand. Names may point into
    `question`, the new message's question section, when it is given; otherwise only to each
    other. None when an RDATA or the message would outgrow 65,535 octets.
    """
    writer = _Writer(base, question)
    out = writer.out
    ttl_offsets = []
    for owner, fixed, end, rtype in spans:
        _copy_name(writer, wire, owner, True)
        ttl_offsets.append(len(out) + 4)
        out += wire[fixed : fixed + 10]
        start = len(out)
        _copy_rdata(writer, wire, rtype, fixed + 10, end)
        length = len(out) - start
        if length > 0xFFFF:
            return None
        out[start - 2 : start] = length.to_bytes(2, "big")
    if base + len(out) > 0xFFFF:
        return None
    return Body(bytes(out), tuple(ttl_offsets), tuple(writer.pointers))


def _copy_name(writer: _Writer, wire: bytes, offset: int, compress: bool) -> int:
    """Write the name at `offset` of `wire`; returns the offset after it."""
    found = read_name(wire, offset)
    assert found is not None, "the caller has walked this message"
    writer.name(found[0], compress)
    return found[1]


def _copy_rdata(writer: _Writer, wire: bytes, rtype: int, position: int, end: int) -> None:
    out = writer.out
    if rtype == _NAPTR and position < end:
        # order, preference and three character strings come before the name
        after = position + 4
        for _ in range(3):
            after += 1 + wire[after]
        out += wire[position:after]
        _copy_name(writer, wire, after, False)
        return
    shape = _NAMES.get(rtype)
    if shape is None or position == end:
        out += wire[position:end]
        return
    before, names, _, compress = shape
    out += wire[position : position + before]
    position += before
    for _ in range(names):
        position = _copy_name(writer, wire, position, compress)
    out += wire[position:end]


def relocate(body: Body, shift: int) -> bytes | None:
    """Return `body` for a message in which it stands `shift` octets further on.

    Only for a body whose names point to each other alone. None when a pointer cannot reach.
    """
    if not shift or not body.pointers:
        return body.octets
    octets = bytearray(body.octets)
    for at in body.pointers:
        target = ((octets[at] & 0x3F) << 8 | octets[at + 1]) + shift
        if target > _MAX_POINTER_TARGET:
            return None
        octets[at] = 0xC0 | target >> 8
        octets[at + 1] = target & 0xFF
    return bytes(octets)


def leans_on_header(wire: bytes, spans: Iterable[RecordSpan]) -> bool:
    """Return whether a name in these records points into the header, which each reply changes."""
    return any(_points_to_header(wire, at) for span in spans for at in _names_of(wire, span))


def _points_to_header(wire: bytes, position: int) -> bool:
    while wire[position]:
        if wire[position] < 0xC0:
            position += wire[position] + 1
        else:
            position = (wire[position] & 0x3F) << 8 | wire[position + 1]
            if position < HEADER_LENGTH:
                return True
    return False


def _names_of(wire: bytes, span: RecordSpan) -> list[int]:
    """Offsets of the names of one record: its owner and those in its RDATA."""
    owner, fixed, end, rtype = span
    found = [owner]
    position = fixed + 10
    if rtype == _NAPTR and position < end:
        position += 4
        for _ in range(3):
            position += 1 + wire[position]
        found.append(position)
    shape = _NAMES.get(rtype)
    if shape is not None and position < end:
        position += shape[0]
        for _ in range(shape[1]):
            found.append(position)
            position = skip_name(wire, position)
    return found
