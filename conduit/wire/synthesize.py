"""Builds the replies that the forwarder makes up itself: errors and refusals without records."""

from __future__ import annotations

import struct
from typing import Final

from conduit.wire.query import Query

#: UDP payload size that our OPT announces, in octets (the DNS flag day 2020 value).
PAYLOAD_SIZE: Final = 1232

_OPCODE_RD_CD: Final = 0x7800 | 0x0100 | 0x0010
_QR_RA: Final = 0x8000 | 0x0080
_OPTION_EXTENDED_ERROR: Final = 15
# keeps the reply below 512 octets with the longest name
_MAX_EXTRA_TEXT: Final = 200

_pack_header: Final = struct.Struct("!6H").pack
_pack_opt: Final = struct.Struct("!BHHIH").pack
_pack_error: Final = struct.Struct("!3H").pack


def synthesize_reply(
    query: Query, rcode: int, extended_error: int | None = None, extra_text: str = ""
) -> bytes:
    """A reply to `query` without records, with the low four bits of `rcode`.

    Carries the client's id, opcode, question (letter case kept), RD and CD; QR and RA are set, AA,
    TC and AD clear. A client that sent an OPT gets one: version 0, payload size 1232, its DO bit,
    and an Extended DNS Error (RFC 8914 section 2) when `extended_error` (0-65535) is given, with
    `extra_text` cut to 200 octets of UTF-8. Bits of `rcode` above the fourth are lost, as in
    chapter 20 section 16.3.
    """
    flags = query.flags & _OPCODE_RD_CD | _QR_RA | rcode & 0xF
    if not query.has_opt:
        return _pack_header(query.id, flags, 1, 0, 0, 0) + query.question
    option = b""
    if extended_error is not None:
        text = b""
        if extra_text:
            text = extra_text.encode("utf-8", "replace")[:_MAX_EXTRA_TEXT]
            # a cut inside a character must not leave half of it
            text = text.decode("utf-8", "ignore").encode("utf-8")
        option = _pack_error(_OPTION_EXTENDED_ERROR, 2 + len(text), extended_error) + text
    return b"".join(
        (
            _pack_header(query.id, flags, 1, 0, 0, 1),
            query.question,
            _pack_opt(0, 41, PAYLOAD_SIZE, query.edns_flags & 0x8000, len(option)),
            option,
        )
    )
