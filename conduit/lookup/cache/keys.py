"""Builds cache keys: which queries may share an answer, and which never touch the cache.

The layout is that of chapter 40 section 5, so that LMDB files of the original stay readable. Two
more facts are part of a key: RD, as a bit that is set when the client cleared RD (so that the key
of an ordinary query is that of the original), and the EDNS version, which is always 0 because
every other version bypasses the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from conduit.wire import Query

_OPCODE: Final = 0x7800
_RD: Final = 0x0100
_CD: Final = 0x0010
_DO: Final = 0x8000

_BIT_DO: Final = 0x01
_BIT_CD: Final = 0x02
_BIT_RD_CLEAR: Final = 0x04

_SHAPE_COMPLETE: Final = 0
_SHAPE_TRUNCATED: Final = 2

_OPTION_CLIENT_SUBNET: Final = 8
# family number -> address bits (RFC 7871 section 6); family 0 is how some clients opt out
_SUBNET_BITS: Final = {0: 0, 1: 32, 2: 128}

# OPT is no question; TKEY, TSIG, IXFR, AXFR are exchanges of one client or of many messages
_NEVER_CACHED: Final = frozenset({41, 249, 250, 251, 252})

# ANCOUNT, NSCOUNT and ARCOUNT of an ordinary query without and with an OPT
_NO_RECORDS: Final = bytes(6)
_ONLY_OPT: Final = b"\0\0\0\0\0\1"

_NAME_AT: Final = 3
# key version 1 and the length of the name
_HEADS: Final = tuple(b"\x01" + length.to_bytes(2, "big") for length in range(256))
# flags, shape "complete" and no ECS
_TAILS: Final = tuple(bytes((bits, _SHAPE_COMPLETE, 0)) for bits in range(8))


def cache_key(query: Query) -> bytes | None:
    """Return the key of the complete answer to `query`, None when the query bypasses the cache.

    Bypassed are: an opcode other than QUERY, an EDNS version other than 0, types that are no
    ordinary questions (AXFR, IXFR, TKEY, TSIG, OPT), a query with records besides one OPT (a
    signature, for example), and a client subnet that is malformed or stands twice.
    """
    flags = query.flags
    if flags & _OPCODE or query.qtype in _NEVER_CACHED:
        return None
    bits = 0 if flags & _RD else _BIT_RD_CLEAR
    if flags & _CD:
        bits |= _BIT_CD
    tail = _TAILS[bits]
    wire = query.wire
    opt = query.opt_offset
    if opt < 0:
        if wire[6:12] != _NO_RECORDS:
            return None
    else:
        if wire[6:12] != _ONLY_OPT or query.edns_version:
            return None
        if query.edns_flags & _DO:
            tail = _TAILS[bits | _BIT_DO]
        if wire[opt + 9] or wire[opt + 10]:
            subnet = client_subnet(query)
            if subnet is None:
                return None
            if subnet:
                tail = tail[:2] + bytes((len(subnet),)) + subnet
    name = query.qname_folded
    return _HEADS[len(name)] + name + query.question[-4:] + tail


def client_subnet(query: Query) -> bytes | None:
    """Return the body of the query's client-subnet option (RFC 7871 section 6).

    Empty without the option. None when the option stands twice or is no well-formed query option:
    unknown family, prefix beyond the address, scope not 0, octets missing, or bits set beyond the
    prefix; the upstream may judge such a query, the cache does not.
    """
    if query.opt_offset < 0:
        return b""
    wire = query.wire
    position = query.opt_offset + 11
    end = position + (wire[position - 2] << 8 | wire[position - 1])
    body = b""
    while position < end:
        length = wire[position + 2] << 8 | wire[position + 3]
        if wire[position] == 0 and wire[position + 1] == _OPTION_CLIENT_SUBNET:
            if body:
                return None
            body = wire[position + 4 : position + 4 + length]
            if not _well_formed(body):
                return None
        position += 4 + length
    return body


def _well_formed(body: bytes) -> bool:
    if len(body) < 4 or body[3]:
        return False
    bits = _SUBNET_BITS.get(body[0] << 8 | body[1])
    prefix = body[2]
    if bits is None or prefix > bits or len(body) != 4 + (prefix + 7) // 8:
        return False
    spare = -prefix % 8
    return not spare or not body[-1] & ((1 << spare) - 1)


def question_length(key: bytes) -> int:
    """Return the octets of the uncompressed question (name, type, class) that `key` speaks of."""
    return (key[1] << 8 | key[2]) + 4


def has_client_subnet(key: bytes) -> bool:
    """Return whether `key` is that of a query with a client-subnet option."""
    return key[_NAME_AT + question_length(key) + 2] != 0


def truncated_key(key: bytes) -> bytes:
    """Return the key of the truncated answer beside the complete one of `key`."""
    at = _NAME_AT + question_length(key) + 1
    return key[:at] + bytes((_SHAPE_TRUNCATED,)) + key[at + 1 :]


def ancestor_keys(key: bytes) -> Iterator[bytes]:
    """Yield the keys of the names above that of `key`, nearest first, without the root.

    All other dimensions are those of `key` (chapter 40 section 6.1, step 2).
    """
    end = _NAME_AT + (key[1] << 8 | key[2])
    rest = key[end:]
    position = _NAME_AT
    while True:
        position += key[position] + 1
        if position >= end - 1:
            return
        yield _HEADS[end - position] + key[position:end] + rest
