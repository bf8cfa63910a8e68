"""Reads what an explained query would send to the client: rcode, flags, Extended DNS Error."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from conduit.cli.explain_record import ClientFacts, ExtendedErrorFacts
from conduit.wire import ExtendedError, extended_rcode, iter_records, rcode_name

_TYPE_OPT: Final = 41
_OPTION_EXTENDED_ERROR: Final = 15
#: Flags of the second header word (RFC 1035 section 4.1.1, RFC 4035 section 3.2), in wire order.
_FLAGS: Final = (
    (0x8000, "qr"),
    (0x0400, "aa"),
    (0x0200, "tc"),
    (0x0100, "rd"),
    (0x0080, "ra"),
    (0x0020, "ad"),
    (0x0010, "cd"),
)


def read_reply(facts: ClientFacts, wire: bytes) -> ClientFacts:
    """Return `facts` with what stands in the well-formed reply `wire`."""
    word = int.from_bytes(wire[2:4], "big")
    return replace(
        facts,
        rcode=rcode_name(extended_rcode(wire)),
        flags=tuple(name for bit, name in _FLAGS if word & bit),
        size=len(wire),
        extended_error=_extended_error(wire),
    )


def _extended_error(wire: bytes) -> ExtendedErrorFacts | None:
    for record in iter_records(wire) or ():
        if record.rtype != _TYPE_OPT:
            continue
        position, end = record.rdata_offset, record.end
        while position + 4 <= end:
            option, length = struct.unpack_from("!2H", wire, position)
            value = wire[position + 4 : position + 4 + length]
            if option == _OPTION_EXTENDED_ERROR and length >= 2:
                code = int.from_bytes(value[:2], "big")
                known = {error.value: error.name for error in ExtendedError}
                text = value[2:].decode("utf-8", "replace")
                return ExtendedErrorFacts(code, known.get(code, f"CODE{code}"), text)
            position += 4 + length
    return None
