"""Frame Streams, both sides of the bidirectional protocol, as functions and objects without I/O.

A data frame is its length and its payload; a control frame is a zero, its length, its type and its
fields. All integers are 32 bits, big endian (chapter 50 section 5.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

#: The content type of dnstap.
CONTENT_TYPE: Final = b"protobuf:dnstap.Dnstap"
#: Largest control frame, in octets after its length field.
MAX_CONTROL: Final = 512
#: Largest data frame that the receiving side takes, in octets.
MAX_DATA: Final = 1 << 20

_FIELD_CONTENT_TYPE: Final = 1
_word: Final = Struct(">I")
_two_words: Final = Struct(">II")
_three_words: Final = Struct(">III")


class FrameStreamError(Exception):
    """The peer broke the protocol; the text says how."""


class Control(IntEnum):
    """Types of control frames."""

    ACCEPT = 1
    START = 2
    STOP = 3
    READY = 4
    FINISH = 5


class ControlFrame(NamedTuple):
    """A received control frame with the content types it names."""

    type: Control
    content_types: tuple[bytes, ...]


def encode_control(control: Control, content_types: Sequence[bytes] = ()) -> bytes:
    """Return a control frame, the leading zero included."""
    fields = b"".join(
        _two_words.pack(_FIELD_CONTENT_TYPE, len(content)) + content for content in content_types
    )
    return _three_words.pack(0, 4 + len(fields), control) + fields


#: What a client sends, in order: READY, START after the ACCEPT, STOP at the end.
READY: Final = encode_control(Control.READY, (CONTENT_TYPE,))
START: Final = encode_control(Control.START, (CONTENT_TYPE,))
STOP: Final = encode_control(Control.STOP)
ACCEPT: Final = encode_control(Control.ACCEPT, (CONTENT_TYPE,))
FINISH: Final = encode_control(Control.FINISH)


def encode_data(payload: bytes) -> bytes:
    """Return a data frame. Raises ValueError for an empty payload, which has no encoding."""
    if not payload:
        raise ValueError("a data frame cannot be empty")
    return _word.pack(len(payload)) + payload


def decode_control(body: bytes) -> ControlFrame:
    """Decode the octets after the length field of a control frame. Raises FrameStreamError."""
    if not 4 <= len(body) <= MAX_CONTROL:
        raise FrameStreamError(f"control frame of {len(body)} octets")
    (number,) = _word.unpack_from(body)
    try:
        control = Control(number)
    except ValueError as error:
        raise FrameStreamError(f"unknown control frame type {number}") from error
    content_types = []
    position = 4
    while position < len(body):
        if len(body) - position < 8:
            raise FrameStreamError("control field cut short")
        field, length = _two_words.unpack_from(body, position)
        position += 8
        if field != _FIELD_CONTENT_TYPE:
            raise FrameStreamError(f"unknown control field {field}")
        if length > len(body) - position:
            raise FrameStreamError("content type cut short")
        content_types.append(body[position : position + length])
        position += length
    return ControlFrame(control, tuple(content_types))


class FrameReader:
    """Cuts a byte stream into frames: `feed` octets, then take frames until there is none.

    Holds at most one incomplete frame and what was fed with it.
    """

    __slots__ = ("_buffer", "_max_data")

    def __init__(self, max_data: int = MAX_DATA) -> None:
        self._buffer = bytearray()
        self._max_data = max_data

    def feed(self, octets: bytes) -> None:
        """Add received octets."""
        self._buffer += octets

    @property
    def pending(self) -> int:
        """Number of octets that are not part of a frame taken."""
        return len(self._buffer)

    def next_frame(self) -> ControlFrame | bytes | None:
        """Return a control frame, the payload of a data frame, or None until more octets come.

        Raises FrameStreamError for a frame that cannot be one; the stream is then unusable.
        """
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        (length,) = _word.unpack_from(buffer)
        if length:
            if length > self._max_data:
                raise FrameStreamError(f"data frame of {length} octets")
            return self._take(4, length)
        if len(buffer) < 8:
            return None
        (length,) = _word.unpack_from(buffer, 4)
        if not 4 <= length <= MAX_CONTROL:
            raise FrameStreamError(f"control frame of {length} octets")
        body = self._take(8, length)
        return decode_control(body) if body is not None else None

    def _take(self, start: int, length: int) -> bytes | None:
        end = start + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[start:end])
        del self._buffer[:end]
        return body


class ClientHandshake:
    """The client's side of the opening: send `READY`, feed the answer, send what `feed` returns."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = FrameReader()

    def feed(self, octets: bytes) -> bytes | None:
        """Take received octets (empty at the end of the stream).

        Returns the START frame once the peer has accepted, None until then. Raises
        FrameStreamError when the peer does anything else than accept our content type.
        """
        if not octets:
            raise FrameStreamError("connection closed during the handshake")
        self._reader.feed(octets)
        frame = self._reader.next_frame()
        if frame is None:
            return None
        if not isinstance(frame, ControlFrame) or frame.type != Control.ACCEPT:
            raise FrameStreamError("the answer to READY is not ACCEPT")
        if frame.content_types and CONTENT_TYPE not in frame.content_types:
            raise FrameStreamError("the collector does not accept dnstap")
        if self._reader.pending:
            raise FrameStreamError("octets after ACCEPT")
        return START


class ServerStream:
    """The collector's side: answers READY with ACCEPT and STOP with FINISH, gives out payloads.

    With `unidirectional` a stream may also begin with START, and is then never answered. Raises
    FrameStreamError from `feed`.
    """

    __slots__ = ("_reader", "_replies", "_state", "_unidirectional")

    def __init__(self, unidirectional: bool = False, max_data: int = MAX_DATA) -> None:
        self._reader = FrameReader(max_data)
        self._unidirectional = unidirectional
        self._state = "new"
        self._replies: list[bytes] = []

    @property
    def stopped(self) -> bool:
        """True after the client's STOP."""
        return self._state == "stopped"

    def replies(self) -> bytes:
        """Return the octets to send to the client, and forget them."""
        octets = b"".join(self._replies)
        self._replies.clear()
        return octets

    def feed(self, octets: bytes) -> list[bytes]:
        """Take received octets and return the payloads of the complete data frames.

        Raises FrameStreamError; payloads that came before the fault in the same octets are lost.
        """
        self._reader.feed(octets)
        payloads: list[bytes] = []
        while self._state != "stopped":
            frame = self._reader.next_frame()
            if frame is None:
                break
            if isinstance(frame, ControlFrame):
                self._control(frame)
            elif self._state in ("started", "one-way"):
                payloads.append(frame)
            else:
                raise FrameStreamError("data frame before START")
        return payloads

    def _control(self, frame: ControlFrame) -> None:
        if self._state == "new" and frame.type == Control.READY:
            _require_dnstap(frame)
            self._replies.append(ACCEPT)
            self._state = "accepted"
        elif frame.type == Control.START and (
            self._state == "accepted" or (self._state == "new" and self._unidirectional)
        ):
            _require_dnstap(frame)
            self._state = "started" if self._state == "accepted" else "one-way"
        elif frame.type == Control.STOP and self._state in ("started", "one-way"):
            if self._state == "started":
                self._replies.append(FINISH)
            self._state = "stopped"
        else:
            raise FrameStreamError(f"{frame.type.name} is out of order")


def _require_dnstap(frame: ControlFrame) -> None:
    if frame.content_types and CONTENT_TYPE not in frame.content_types:
        raise FrameStreamError("the client does not send dnstap")
