"""The dnstap encoder: exact octets, round trips, and agreement with the protobuf library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conduit.observe.events.dnstap import (
    QUERY,
    RESPONSE,
    RETRY,
    ClientMessage,
    EncodeError,
    encode_frame,
    encode_identity,
    varint,
)
from conduit.observe.events.dnstap_decode import DnstapError, address_text, decode_frame

PROTO = Path(__file__).parents[3] / "schema" / "proto" / "dnstap.proto"
TIME_NS = 1_700_000_000_123_456_789


def frame(kind: int = QUERY, extra: bytes = b"", identity: bytes = b"tap", **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "time_ns": TIME_NS,
        "address": "192.0.2.7",
        "port": 4321,
        "is_tcp": False,
        "wire": b"\x12\x34wire",
    }
    fields.update(changes)
    return encode_frame(encode_identity(identity), ClientMessage(kind, **fields), extra)


def test_query_octets() -> None:
    fields = "0805 1001 1801 2204c0000207 30e121 4080e2cfaa06 4d15cd5b07 5206 123477697265"
    body = bytes.fromhex(fields)
    assert frame() == b"\x0a\x03tap\x72" + bytes((len(body),)) + body + b"\x78\x01"


def test_response_octets_over_tcp_and_ipv6() -> None:
    address = "20010db8000000000000000000000001"
    message = (
        f"0806100218022210{address}2a10{address}30e12138e121"
        "6080e2cfaa066d15cd5b07720612347769726578"
    )
    body = bytes.fromhex(message[:-2])
    octets = frame(RESPONSE, b"{}", b"", address="2001:db8::1", is_tcp=True)
    assert octets == b"\x1a\x02{}\x72" + bytes((len(body),)) + body + b"\x78\x01"


@pytest.mark.parametrize("kind", [QUERY, RETRY])
def test_query_and_retry_differ_in_nothing(kind: int) -> None:
    message = decode_frame(frame(kind)).message
    assert message.type_name == "CLIENT_QUERY"
    assert message.query_message == b"\x12\x34wire"
    assert (message.query_time_sec, message.query_time_nsec) == (1_700_000_000, 123_456_789)
    assert message.response_message is None
    assert message.response_time_sec is None
    assert message.response_address is None
    assert message.query_zone is None


def test_response_carries_no_query() -> None:
    message = decode_frame(frame(RESPONSE)).message
    assert message.type_name == "CLIENT_RESPONSE"
    assert message.is_response
    assert (message.query_message, message.query_time_sec) == (None, None)
    assert message.response_port == message.query_port == 4321
    assert address_text(message.response_address) == "192.0.2.7"


def test_zone_of_an_address_is_left_out() -> None:
    message = decode_frame(frame(address="fe80::1%eth0")).message
    assert address_text(message.query_address) == "fe80::1"


def test_bad_address() -> None:
    with pytest.raises(EncodeError, match="nowhere"):
        frame(address="nowhere")


MESSAGES = st.builds(
    ClientMessage,
    st.sampled_from([QUERY, RESPONSE, RETRY]),
    st.integers(0, 2**62),
    st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str),
    st.integers(0, 65535),
    st.booleans(),
    st.binary(min_size=12, max_size=600),
)


@given(MESSAGES, st.binary(max_size=20), st.binary(max_size=300))
def test_round_trip(message: ClientMessage, identity: bytes, extra: bytes) -> None:
    found = decode_frame(encode_frame(encode_identity(identity), message, extra))
    assert found.identity == (identity or None)
    assert found.extra == (extra or None)
    assert found.version is None
    inner = found.message
    assert address_text(inner.query_address) == message.address
    assert inner.query_port == message.port
    assert inner.socket_protocol == (2 if message.is_tcp else 1)
    assert (inner.query_message or inner.response_message) == message.wire
    seconds = inner.response_time_sec if inner.is_response else inner.query_time_sec
    rest = inner.response_time_nsec if inner.is_response else inner.query_time_nsec
    assert seconds is not None
    assert rest is not None
    assert seconds * 10**9 + rest == message.time_ns


@given(st.integers(0, 2**64 - 1))
def test_varint_is_little_endian_base_128(value: int) -> None:
    octets = varint(value)
    assert sum((octet & 0x7F) << 7 * index for index, octet in enumerate(octets)) == value
    assert all(octet & 0x80 for octet in octets[:-1])
    assert not octets[-1] & 0x80


@given(st.binary(max_size=80))
def test_decoder_raises_nothing_else(octets: bytes) -> None:
    try:
        decode_frame(octets)
    except DnstapError:
        pass


@pytest.mark.parametrize(
    "octets",
    [b"", b"\x78\x01", frame()[:-1], frame()[:-2], frame()[:20], b"\x0a\x7f", b"\x70\x01\x78\x01"],
)
def test_decoder_refuses(octets: bytes) -> None:
    with pytest.raises(DnstapError):
        decode_frame(octets)


def test_decoder_skips_unknown_fields() -> None:
    assert decode_frame(b"\x50\x05\x92\x03\x01x" + frame()).identity == b"tap"


def generated_class() -> Any:
    """Build the `Dnstap` class of the protobuf library from the schema file."""
    pytest.importorskip("google.protobuf", reason="needs the Python package protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    text = re.sub(r"//[^\n]*", "", PROTO.read_text())
    file = descriptor_pb2.FileDescriptorProto(name="dnstap.proto", package="dnstap")
    field_type = descriptor_pb2.FieldDescriptorProto
    scopes: list[Any] = [file]
    pattern = re.compile(
        r"(?P<kind>message|enum)\s+(?P<name>\w+)\s*\{"
        r"|(?P<label>optional|required)\s+(?P<type>\w+)\s+(?P<field>\w+)\s*=\s*(?P<number>\d+);"
        r"|(?P<value>\w+)\s*=\s*(?P<constant>\d+);|(?P<end>\})"
    )
    for match in pattern.finditer(text):
        scope = scopes[-1]
        if match["kind"]:
            group = "enum_type" if match["kind"] == "enum" else "nested_type"
            if match["kind"] == "message" and scope is file:
                group = "message_type"
            scopes.append(getattr(scope, group).add(name=match["name"]))
        elif match["label"]:
            field = scope.field.add(name=match["field"], number=int(match["number"]))
            field.label = field_type.Label.Value(f"LABEL_{match['label'].upper()}")
            if match["type"] in ("bytes", "uint32", "uint64", "fixed32"):
                field.type = field_type.Type.Value(f"TYPE_{match['type'].upper()}")
            else:
                field.type_name = match["type"]
        elif match["value"]:
            scope.value.add(name=match["value"], number=int(match["constant"]))
        else:
            scopes.pop()
    for message in file.message_type:
        enums = {enum.name for enum in (*message.enum_type, *file.enum_type)}
        for field in message.field:
            if field.type_name:
                is_enum = field.type_name in enums
                field.type = field_type.TYPE_ENUM if is_enum else field_type.TYPE_MESSAGE
                nested = field.type_name in {enum.name for enum in message.enum_type}
                scope_name = f"dnstap.{message.name}" if nested else "dnstap"
                field.type_name = f".{scope_name}.{field.type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("dnstap.Dnstap"))


@pytest.mark.parametrize("kind", [QUERY, RESPONSE])
def test_protobuf_library_reads_and_writes_the_same(kind: int) -> None:
    octets = frame(kind, b'{"a":1}', address="2001:db8::1", is_tcp=True, wire=b"x" * 300)
    parsed = generated_class()()
    parsed.ParseFromString(octets)
    assert parsed.identity == b"tap"
    assert parsed.extra == b'{"a":1}'
    assert parsed.message.type == (6 if kind == RESPONSE else 5)
    assert parsed.message.socket_family == 2
    assert parsed.message.socket_protocol == 2
    assert (parsed.message.response_message or parsed.message.query_message) == b"x" * 300
    # canonical: same fields, same order, same length
    assert parsed.SerializeToString() == octets
