"""Entries as octets in an LMDB file (chapter 40 section 7.2.1), and back.

The value begins as the original's does: two times, kind, length, message. What follows the message
is ignored there; here it holds the places that serving needs and a checksum, so that a hit needs no
walk through the message. A value of the original is walked when it is read.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from conduit.lookup.cache.entry import Entry, Kind, classify, entry_of
from conduit.lookup.cache.keys import has_client_subnet, question_length
from conduit.lookup.cache.layout import lay_out
from conduit.lookup.cache.policy import CachePolicy
from conduit.wire.structure import HEADER_LENGTH

# filled and expires (Unix seconds), kind, message length
_HEAD: Final = struct.Struct("<QQBI")
# magic, checksum over everything but itself, body end, octets of options, number of TTL offsets
_TRAIL: Final = struct.Struct("<4sIHHH")
_MAGIC: Final = b"CDP1"
_EXPIRES: Final = struct.Struct("<Q")
_MAX_KIND: Final = max(Kind)


def encode_value(entry: Entry) -> bytes:
    """Return the value of `entry`, whose times are whole Unix seconds."""
    wire = entry.wire
    head = _HEAD.pack(int(entry.stored), int(entry.expires), entry.kind, len(wire))
    offsets = entry.ttl_offsets
    places = struct.pack(f"<{len(offsets)}H", *offsets) + entry.options
    fields = (entry.body_end, len(entry.options), len(offsets))
    checksum = _checksum(head, wire, fields, places)
    return b"".join((head, wire, _TRAIL.pack(_MAGIC, checksum, *fields), places))


def _checksum(head: bytes, wire: bytes, fields: tuple[int, int, int], places: bytes) -> int:
    checksum = zlib.crc32(wire, zlib.crc32(head))
    return zlib.crc32(places, zlib.crc32(repr(fields).encode("ascii"), checksum))


def expires_at(value: bytes) -> int:
    """Return the expiry (Unix seconds) of a value; 0, long past, when it is too short."""
    return int(_EXPIRES.unpack_from(value, 8)[0]) if len(value) >= _HEAD.size else 0


def decode_value(key: bytes, value: bytes) -> Entry | None:
    """Return the entry in `value`, None when it is damaged or must not be served."""
    if len(value) < _HEAD.size:
        return None
    stored, expires, kind, length = _HEAD.unpack_from(value)
    end = _HEAD.size + length
    if kind > _MAX_KIND or end > len(value):
        return None
    wire = value[_HEAD.size : end]
    if len(value) < end + _TRAIL.size or value[end : end + 4] != _MAGIC:
        return _examined(key, wire, stored, expires, kind)
    _, checksum, body_end, options_length, count = _TRAIL.unpack_from(value, end)
    places = value[end + _TRAIL.size :]
    fields = (body_end, options_length, count)
    if (
        len(places) != 2 * count + options_length
        or _checksum(value[: _HEAD.size], wire, fields, places) != checksum
    ):
        return None
    return Entry(
        wire,
        stored,
        expires,
        kind,
        HEADER_LENGTH + question_length(key),
        body_end,
        struct.unpack_from(f"<{count}H", places),
        places[2 * count :],
    )


# the most permissive policy: only what must never be served is left out here
_ANY: Final = CachePolicy(servfail_ttl=1, truncated_ttl=1)


def _examined(key: bytes, wire: bytes, stored: int, expires: int, kind: int) -> Entry | None:
    layout = lay_out(wire, key[3 : 3 + question_length(key)])
    if layout is None or not classify(layout, _ANY)[1]:
        return None
    return entry_of(layout, stored, expires, kind, has_client_subnet(key))
