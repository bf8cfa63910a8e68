"""Deterministic sampling by transaction id, bit-exact (chapter 30 section 4.4)."""

from __future__ import annotations

import math
import re
from typing import Final

from conduit.policy.siphash import siphash13

BUCKETS: Final = 10_000
GOLDEN: Final = 0x9E3779B97F4A7C15
MASK: Final = (1 << 64) - 1
_NUMBER: Final = re.compile(r"\+?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z", re.ASCII)


def parse_percent(text: str) -> float:
    """Return the percentage of a `sample_percent` value.

    Raises ValueError unless the trimmed text is a plain decimal number from 0 to 100.
    """
    trimmed = text.strip()
    if not _NUMBER.match(trimmed):
        raise ValueError(f"'{text}' is not a number from 0 to 100")
    value = float(trimmed)
    if not 0.0 <= value <= 100.0:
        raise ValueError(f"'{text}' is not from 0 to 100")
    return value


def threshold(percent: float) -> int:
    """Return how many of the 10,000 buckets `percent` takes.

    0 takes none and 100 takes all. For some values it is one less than the percentage says,
    because the arithmetic is that of IEEE doubles: kept, since operators compare samples.
    """
    rate = math.floor(percent * 100 + 0.5) / BUCKETS
    if rate >= 1:
        return BUCKETS
    if rate <= 0:
        return 0
    return math.floor(rate * BUCKETS)


def global_bucket(transaction_id: int) -> int:
    """Return the bucket of a transaction without a salt, 0 to 9999."""
    return ((transaction_id * GOLDEN) & MASK) % BUCKETS


def salted_bucket(transaction_id: int, salt: bytes) -> int:
    """Return the bucket of a transaction under `salt` (UTF-8), 0 to 9999."""
    if not salt:
        return global_bucket(transaction_id)
    return siphash13((transaction_id & MASK).to_bytes(8, "little") + salt + b"\xff") % BUCKETS


def address_bucket(packed: bytes) -> int:
    """Return the bucket of a client address (4 or 16 octets), for the ACL denial log."""
    family = 0 if len(packed) == 4 else 1
    return siphash13(family.to_bytes(8, "little") + packed) % BUCKETS
