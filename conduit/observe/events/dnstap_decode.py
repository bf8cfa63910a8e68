"""Reads dnstap frames back, those of any sender: for the tracer and for tests.

A plain protobuf walk that keeps the fields it knows and skips the others, as protobuf demands.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_TYPE_NAMES: Final = (
    "AUTH_QUERY",
    "AUTH_RESPONSE",
    "RESOLVER_QUERY",
    "RESOLVER_RESPONSE",
    "CLIENT_QUERY",
    "CLIENT_RESPONSE",
    "FORWARDER_QUERY",
    "FORWARDER_RESPONSE",
    "STUB_QUERY",
    "STUB_RESPONSE",
    "TOOL_QUERY",
    "TOOL_RESPONSE",
    "UPDATE_QUERY",
    "UPDATE_RESPONSE",
)
MESSAGE_TYPES: Final[Mapping[int, str]] = dict(enumerate(_TYPE_NAMES, start=1))
FAMILIES: Final[Mapping[int, str]] = {1: "INET", 2: "INET6"}
PROTOCOLS: Final[Mapping[int, str]] = {
    1: "UDP",
    2: "TCP",
    3: "DOT",
    4: "DOH",
    5: "DNSCryptUDP",
    6: "DNSCryptTCP",
    7: "DOQ",
}

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5


class DnstapError(ValueError):
    """The octets are not a dnstap message; the text says why."""


@dataclass(frozen=True, slots=True)
class Message:
    """The `Message` part of a frame; a field that is absent is None."""

    type: int
    socket_family: int | None = None
    socket_protocol: int | None = None
    query_address: bytes | None = None
    response_address: bytes | None = None
    query_port: int | None = None
    response_port: int | None = None
    query_time_sec: int | None = None
    query_time_nsec: int | None = None
    query_message: bytes | None = None
    query_zone: bytes | None = None
    response_time_sec: int | None = None
    response_time_nsec: int | None = None
    response_message: bytes | None = None

    @property
    def is_response(self) -> bool:
        """True for the types that end in `_RESPONSE`: the even numbers."""
        return self.type % 2 == 0

    @property
    def type_name(self) -> str:
        """Name of the type, `TYPE<n>` for an unknown one."""
        return MESSAGE_TYPES.get(self.type, f"TYPE{self.type}")


@dataclass(frozen=True, slots=True)
class Frame:
    """One decoded `Dnstap` message."""

    message: Message
    identity: bytes | None = None
    version: bytes | None = None
    extra: bytes | None = None


# number: name and wire type
_MESSAGE_FIELDS: Final[Mapping[int, tuple[str, int]]] = {
    1: ("type", _VARINT),
    2: ("socket_family", _VARINT),
    3: ("socket_protocol", _VARINT),
    4: ("query_address", _BYTES),
    5: ("response_address", _BYTES),
    6: ("query_port", _VARINT),
    7: ("response_port", _VARINT),
    8: ("query_time_sec", _VARINT),
    9: ("query_time_nsec", _FIXED32),
    10: ("query_message", _BYTES),
    11: ("query_zone", _BYTES),
    12: ("response_time_sec", _VARINT),
    13: ("response_time_nsec", _FIXED32),
    14: ("response_message", _BYTES),
}
_FRAME_FIELDS: Final[Mapping[int, tuple[str, int]]] = {
    1: ("identity", _BYTES),
    2: ("version", _BYTES),
    3: ("extra", _BYTES),
    14: ("message", _BYTES),
    15: ("type", _VARINT),
}


def decode_frame(octets: bytes) -> Frame:
    """Decode one `Dnstap` message. Raises DnstapError."""
    numbers, texts = _collect(octets, _FRAME_FIELDS)
    if numbers.get("type") != 1 or "message" not in texts:
        raise DnstapError("not a dnstap frame of type MESSAGE")
    return Frame(
        _decode_message(texts["message"]),
        texts.get("identity"),
        texts.get("version"),
        texts.get("extra"),
    )


def _decode_message(octets: bytes) -> Message:
    numbers, texts = _collect(octets, _MESSAGE_FIELDS)
    if "type" not in numbers:
        raise DnstapError("message without a type")
    return Message(
        type=numbers["type"],
        socket_family=numbers.get("socket_family"),
        socket_protocol=numbers.get("socket_protocol"),
        query_address=texts.get("query_address"),
        response_address=texts.get("response_address"),
        query_port=numbers.get("query_port"),
        response_port=numbers.get("response_port"),
        query_time_sec=numbers.get("query_time_sec"),
        query_time_nsec=numbers.get("query_time_nsec"),
        query_message=texts.get("query_message"),
        query_zone=texts.get("query_zone"),
        response_time_sec=numbers.get("response_time_sec"),
        response_time_nsec=numbers.get("response_time_nsec"),
        response_message=texts.get("response_message"),
    )


def _collect(
    octets: bytes, known: Mapping[int, tuple[str, int]]
) -> tuple[dict[str, int], dict[str, bytes]]:
    numbers: dict[str, int] = {}
    texts: dict[str, bytes] = {}
    for number, wire_type, value in _walk(octets):
        name, expected = known.get(number, ("", -1))
        if not name:
            continue
        if wire_type != expected:
            raise DnstapError(f"field {number} has wire type {wire_type}")
        # the last of several occurrences counts (protobuf encoding, "last one wins")
        if isinstance(value, bytes):
            texts[name] = value
        else:
            numbers[name] = value
    return numbers, texts


def _walk(octets: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    position = 0
    end = len(octets)
    while position < end:
        key, position = _read_varint(octets, position)
        wire_type = key & 7
        value: int | bytes
        if wire_type == _VARINT:
            value, position = _read_varint(octets, position)
        elif wire_type == _BYTES:
            length, position = _read_varint(octets, position)
            value, position = _read_octets(octets, position, length)
        elif wire_type in (_FIXED32, _FIXED64):
            found, position = _read_octets(octets, position, 4 if wire_type == _FIXED32 else 8)
            value = int.from_bytes(found, "little")
        else:
            raise DnstapError(f"wire type {wire_type} is not supported")
        yield key >> 3, wire_type, value


def _read_octets(octets: bytes, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if end > len(octets):
        raise DnstapError("field cut short")
    return octets[position:end], end


def _read_varint(octets: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(octets):
            raise DnstapError("number cut short")
        octet = octets[position]
        position += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, position
    raise DnstapError("number of more than 64 bits")


def address_text(packed: bytes | None) -> str | None:
    """Return the text of an address of 4 or 16 octets, None for an absent or odd one."""
    if packed is None or len(packed) not in (4, 16):
        return None
    return str(ipaddress.ip_address(packed))
