"""SipHash-1-3 with a zero key, the hash behind salted sampling (chapter 30 section 4.4)."""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1
# the initial state for a key of zeros
_V0: Final = 0x736F6D6570736575
_V1: Final = 0x646F72616E646F6D
_V2: Final = 0x6C7967656E657261
_V3: Final = 0x7465646279746573


def siphash13(data: bytes) -> int:
    """Return the 64-bit SipHash-1-3 of `data` under a key of 128 zero bits."""
    v0, v1, v2, v3 = _V0, _V1, _V2, _V3
    length = len(data)
    whole = length & ~7
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | ((length & 0xFF) << 56))
    for word in words:
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(3):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = (v0 + v1) & _MASK
    v1 = ((v1 << 13) & _MASK | v1 >> 51) ^ v0
    v0 = (v0 << 32) & _MASK | v0 >> 32
    v2 = (v2 + v3) & _MASK
    v3 = ((v3 << 16) & _MASK | v3 >> 48) ^ v2
    v0 = (v0 + v3) & _MASK
    v3 = ((v3 << 21) & _MASK | v3 >> 43) ^ v0
    v2 = (v2 + v1) & _MASK
    v1 = ((v1 << 17) & _MASK | v1 >> 47) ^ v2
    v2 = (v2 << 32) & _MASK | v2 >> 32
    return v0, v1, v2, v3
