"""Encodes one client message as a dnstap frame: protobuf written by hand (chapter 50 section 5.3).

The message has few fields of fixed shape, so that plain concatenation beats a protobuf library by
far. `schema/proto/dnstap.proto` describes the format; `dnstap_decode` reads it back.
"""

from __future__ import annotations

from socket import AF_INET, AF_INET6, inet_pton
from struct import Struct
from typing import Final

# kinds of frame, as indices of the tables below
QUERY: Final = 0
RESPONSE: Final = 1
RETRY: Final = 2

CLIENT_QUERY: Final = 5
CLIENT_RESPONSE: Final = 6

_NANOSECONDS: Final = 1_000_000_000
_fixed32: Final = Struct("<I").pack


class EncodeError(ValueError):
    """A message cannot be put into a frame; the text says why."""


class ClientMessage:
    """What one frame reports: the message, the client's socket and the time.

    `kind` is QUERY, RESPONSE or RETRY; `time_ns` is wall-clock nanoseconds since 1970; `address`
    is the text of the client's IP address. One object may wait in the queues of several sinks.
    """

    __slots__ = ("address", "is_tcp", "kind", "port", "time_ns", "wire")

    def __init__(
        self, kind: int, time_ns: int, address: str, port: int, is_tcp: bool, wire: bytes
    ) -> None:
        self.kind = kind
        self.time_ns = time_ns
        self.address = address
        self.port = port
        self.is_tcp = is_tcp
        self.wire = wire


def varint(value: int) -> bytes:
    """Return `value` (0 to 2**64 - 1) as a protobuf base-128 varint."""
    if value < 0x80:
        return _SMALL[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    octets = bytearray()
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


_SMALL: Final = tuple(bytes((value,)) for value in range(0x80))


def _head(message_type: int, family: int, protocol: int, octets: int) -> bytes:
    """Fields 1 to 3 of `Message` and the key and length of field 4, the query address."""
    return bytes((0x08, message_type, 0x10, family, 0x18, protocol, 0x22, octets))


# by kind, is_ipv6 and is_tcp
_HEADS: Final = tuple(
    tuple(
        tuple(_head(message_type, family, protocol, octets) for protocol in (1, 2))
        for family, octets in ((1, 4), (2, 16))
    )
    for message_type in (CLIENT_QUERY, CLIENT_RESPONSE, CLIENT_QUERY)
)
# key and length of field 5, the response address
_RESPONSE_ADDRESS: Final = (b"\x2a\x04", b"\x2a\x10")
# fields 15 of `Dnstap`: type MESSAGE
_TAIL: Final = b"\x78\x01"


def encode_identity(identity: bytes) -> bytes:
    """Return field 1 of `Dnstap`, the same in each frame of a sink; empty for no identity."""
    return b"\x0a" + varint(len(identity)) + identity if identity else b""


def encode_frame(identity_field: bytes, message: ClientMessage, extra: bytes) -> bytes:
    """Return one `Dnstap` message; empty `extra` leaves the field out.

    `identity_field` comes from `encode_identity`. Raises EncodeError for a client address that is
    not an IP address.
    """
    address = message.address
    is_ipv6 = ":" in address
    try:
        # a zone (RFC 4007) has no place in the 16 octets
        packed = (
            inet_pton(AF_INET6, address.partition("%")[0])
            if is_ipv6
            else inet_pton(AF_INET, address)
        )
    except OSError as error:
        raise EncodeError(f"client address '{address}' is not an IP address") from error
    wire = message.wire
    port = varint(message.port)
    seconds, nanoseconds = divmod(message.time_ns, _NANOSECONDS)
    head = _HEADS[message.kind][is_ipv6][message.is_tcp]
    if message.kind == RESPONSE:
        body = b"".join(
            (
                head,
                packed,
                _RESPONSE_ADDRESS[is_ipv6],
                packed,
                b"\x30",
                port,
                b"\x38",
                port,
                b"\x60",
                varint(seconds),
                b"\x6d",
                _fixed32(nanoseconds),
                b"\x72",
                varint(len(wire)),
                wire,
            )
        )
    else:
        body = b"".join(
            (
                head,
                packed,
                b"\x30",
                port,
                b"\x40",
                varint(seconds),
                b"\x4d",
                _fixed32(nanoseconds),
                b"\x52",
                varint(len(wire)),
                wire,
            )
        )
    if extra:
        return b"".join(
            (
                identity_field,
                b"\x1a",
                varint(len(extra)),
                extra,
                b"\x72",
                varint(len(body)),
                body,
                _TAIL,
            )
        )
    return b"".join((identity_field, b"\x72", varint(len(body)), body, _TAIL))
