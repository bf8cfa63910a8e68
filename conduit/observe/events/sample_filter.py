"""The `sample_percent` of a filter block, for event sinks and for trace activation.

It rounds differently from the selector of the same name (chapter 50 section 5.5): 99.99 takes 9998
of the 10,000 buckets here and 9999 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from conduit.policy.sampling import BUCKETS, GOLDEN, MASK, salted_bucket

if TYPE_CHECKING:
    from conduit.transaction import Transaction

Predicate = Callable[["Transaction"], bool]


def filter_threshold(percent: float) -> int:
    """Return how many of the 10,000 buckets `percent` (0 to 100) takes."""
    rate = percent / 100
    if rate >= 1:
        return BUCKETS
    if rate <= 0:
        return 0
    return math.floor(rate * BUCKETS)


def compile_sampling(
    percent: float, key: str, key_from: str, salts: Mapping[str, str]
) -> Predicate | None:
    """Compile the sampling clause of a filter block; None means that it takes everything.

    `key` is the fixed salt, `key_from` is `qname`, a name of `salts`, or empty. Raises ValueError
    for another `key_from`, which validation refuses.
    """
    limit = filter_threshold(percent)
    if limit >= BUCKETS:
        return None
    if limit <= 0:
        return lambda txn: False
    if key_from == "qname":
        return lambda txn: salted_bucket(txn.id, txn.query.qname_text.encode("utf-8")) < limit
    if key_from:
        if key_from not in salts:
            raise ValueError(f"sample_key_from '{key_from}' is not available here")
        key = salts[key_from]
    if key:
        salt = key.encode("utf-8")
        return lambda txn: salted_bucket(txn.id, salt) < limit
    # global_bucket, written out: every query pays for it
    return lambda txn: (txn.id * GOLDEN & MASK) % BUCKETS < limit
