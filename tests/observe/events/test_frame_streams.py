"""Frame Streams without I/O: exact octets, any cut of the stream, every fault of a peer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conduit.observe.events.frame_streams import (
    ACCEPT,
    CONTENT_TYPE,
    FINISH,
    READY,
    START,
    STOP,
    ClientHandshake,
    Control,
    FrameReader,
    FrameStreamError,
    ServerStream,
    decode_control,
    encode_control,
    encode_data,
)


def test_ch50_example_34_octets_of_the_handshake() -> None:
    head = "0000000000000022{:08x}0000000100000016"
    assert bytes.fromhex(head.format(4)) + b"protobuf:dnstap.Dnstap" == READY
    assert bytes.fromhex(head.format(2)) + b"protobuf:dnstap.Dnstap" == START
    assert len(READY) == len(START) == 42
    assert bytes.fromhex("000000000000000400000003") == STOP
    assert ClientHandshake().feed(ACCEPT) == START


def test_data_frame() -> None:
    assert encode_data(b"abc") == b"\x00\x00\x00\x03abc"
    with pytest.raises(ValueError, match="empty"):
        encode_data(b"")


@pytest.mark.parametrize(
    "answer",
    [
        encode_control(Control.ACCEPT),
        encode_control(Control.ACCEPT, (b"other", CONTENT_TYPE)),
    ],
)
def test_client_takes_an_accept(answer: bytes) -> None:
    handshake = ClientHandshake()
    for octet in answer[:-1]:
        assert handshake.feed(bytes((octet,))) is None
    assert handshake.feed(answer[-1:]) == START


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        FINISH,
        START,
        encode_control(Control.ACCEPT, (b"protobuf:other",)),
        ACCEPT + b"x",
        encode_data(b"data"),
        b"\x00\x00\x00\x00\x00\x00\x00\x03abc",
        b"\x00\x00\x00\x00\x00\x00\x02\x01",
        b"\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x09",
        b"\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01",
        b"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x01x",
        b"HTTP/1.1 400 Bad Request\r\n",
    ],
)
def test_client_refuses(answer: bytes) -> None:
    with pytest.raises(FrameStreamError):
        ClientHandshake().feed(answer)


@given(st.lists(st.binary(min_size=1, max_size=50)), st.data())
def test_server_reads_any_cut_of_a_stream(payloads: list[bytes], data: st.DataObject) -> None:
    octets = READY + START + b"".join(map(encode_data, payloads)) + STOP
    cuts = sorted(data.draw(st.lists(st.integers(0, len(octets)), max_size=6)))
    server = ServerStream()
    found: list[bytes] = []
    replies = b""
    for begin, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        found += server.feed(octets[begin:end])
        replies += server.replies()
    assert found == payloads
    assert replies == ACCEPT + FINISH
    assert server.stopped


def test_one_way_stream_only_where_allowed() -> None:
    octets = START + encode_data(b"x") + STOP
    with pytest.raises(FrameStreamError, match="START"):
        ServerStream().feed(octets)
    server = ServerStream(unidirectional=True)
    assert server.feed(octets) == [b"x"]
    assert server.replies() == b""
    assert ServerStream(unidirectional=True).feed(READY + octets) == [b"x"]


@pytest.mark.parametrize(
    "octets",
    [
        encode_data(b"x"),
        STOP,
        READY + READY,
        READY + encode_data(b"x"),
        READY + START + START,
        encode_control(Control.READY, (b"protobuf:other",)),
    ],
)
def test_server_refuses(octets: bytes) -> None:
    with pytest.raises(FrameStreamError):
        ServerStream().feed(octets)


def test_bound_on_data_frames() -> None:
    reader = FrameReader(max_data=10)
    reader.feed(encode_data(b"x" * 10) + encode_data(b"x" * 11))
    assert reader.next_frame() == b"x" * 10
    with pytest.raises(FrameStreamError, match="11 octets"):
        reader.next_frame()


@given(st.binary(max_size=600))
def test_control_decoder_raises_nothing_else(body: bytes) -> None:
    try:
        frame = decode_control(body)
    except FrameStreamError:
        return
    assert encode_control(frame.type, frame.content_types)[8:] == body
