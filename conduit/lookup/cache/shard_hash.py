"""The hash that chooses the LMDB shard of a key: SipHash-1-3 (chapter 40 section 7.2.1).

Newer Pythons hash source files with the same function in C. It is used when it gives the known
values, which costs a fraction of a microsecond instead of several.
"""

from __future__ import annotations

import _imp
from collections.abc import Callable

from conduit.policy.siphash import siphash13


def _from_interpreter(data: bytes) -> int:
    return int.from_bytes(_imp.source_hash(0, data), "little")


def _choose() -> Callable[[bytes], int]:
    probes = (b"", b"conduit", bytes(range(64)))
    try:
        if all(_from_interpreter(probe) == siphash13(probe) for probe in probes):
            return _from_interpreter
    except (AttributeError, TypeError):
        pass
    return siphash13


_hash = _choose()


def key_hash(key: bytes) -> int:
    """Return the 64-bit hash of `key`, preceded by its length as 64-bit little-endian number."""
    return _hash(len(key).to_bytes(8, "little") + key)
