"""Chooses what leaves a full LMDB shard (chapter 40 section 7.2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conduit.lookup.cache.lmdb_value import expires_at

if TYPE_CHECKING:
    import lmdb

#: Values of `when_full` beside `evict_one`.
REFUSE: Final = "refuse"
SAMPLE: Final = "sample"


class EvictionRule:
    """What a full shard does: `when_full`, and how many entries `sample` looks at."""

    __slots__ = ("sample_size", "when_full")

    def __init__(self, when_full: str, sample_size: int) -> None:
        self.when_full = when_full
        self.sample_size = sample_size

    def victim(self, txn: lmdb.Transaction, database: Any, now: int) -> bytes | None:
        """Return the key to remove, None in an empty shard; `now` in Unix seconds.

        `evict_one` takes the first key. `sample` looks from there and takes the first expired
        entry, else the one that expires soonest. Raises lmdb.Error.
        """
        with txn.cursor(database) as cursor:
            if not cursor.first():
                return None
            victim = bytes(cursor.key())
            if self.when_full != SAMPLE:
                return victim
            earliest = expires_at(bytes(cursor.value()))
            for _ in range(self.sample_size - 1):
                if earliest <= now or not cursor.next():
                    break
                expires = expires_at(bytes(cursor.value()))
                if expires < earliest:
                    victim, earliest = bytes(cursor.key()), expires
            return victim
