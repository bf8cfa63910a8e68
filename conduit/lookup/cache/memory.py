"""Keeps entries in the process: sharded, bounded, and read without a lock.

A hit is one dictionary look-up. Writers lock one shard at a time. Each shard keeps a heap of expiry
times, so that expired entries go first and a sweep touches nothing else, and a table of its keys,
so that a victim is picked in constant time: at random, passing over entries that were hit since
the table was last looked at (random choice, unlike age, is not defeated by a scan over more names
than the cap).
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from typing import Final

from conduit.lookup.cache.entry import Entry
from conduit.lookup.cache.store import Gauges, StoreEvents

# Octets of an entry beside its message and key: objects, hash table, heap, table of keys.
_OVERHEAD: Final = 440
_OVERHEAD_PER_RECORD: Final = 36

_TRIES: Final = 8
# removals for which a sweep holds one lock
_BATCH: Final = 256
_HEAP_SLACK: Final = 64


class _Shard:
    """A part of the store; everything but reads of `entries` needs the lock."""

    __slots__ = ("entries", "heap", "keys", "lock", "octets")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entries: dict[bytes, Entry] = {}
        #: every key once, in any order; an entry's `slot` is its index
        self.keys: list[bytes] = []
        #: (expiry, key); may also hold pairs of entries that are gone
        self.heap: list[tuple[float, bytes]] = []
        self.octets = 0

    def insert(self, key: bytes, entry: Entry) -> None:
        old = self.entries.get(key)
        if old is None:
            entry.slot = len(self.keys)
            self.keys.append(key)
        else:
            entry.slot = old.slot
            self.octets -= _octets(key, old)
        self.entries[key] = entry
        self.octets += _octets(key, entry)
        heap = self.heap
        heapq.heappush(heap, (entry.expires, key))
        if len(heap) > 2 * len(self.keys) + _HEAP_SLACK:
            heap[:] = [(found.expires, name) for name, found in self.entries.items()]
            heapq.heapify(heap)

    def delete(self, key: bytes) -> None:
        entry = self.entries.pop(key)
        self.octets -= _octets(key, entry)
        last = self.keys.pop()
        if entry.slot != len(self.keys):
            self.keys[entry.slot] = last
            self.entries[last].slot = entry.slot

    def drop_expired(self, now: float, at_most: int) -> int:
        """Remove entries whose expiry is not after `now`; returns how many."""
        heap = self.heap
        removed = 0
        while heap and heap[0][0] <= now and removed < at_most:
            expires, key = heapq.heappop(heap)
            entry = self.entries.get(key)
            if entry is not None and entry.expires == expires:
                self.delete(key)
                removed += 1
        return removed

    def evict(self, draw: random.Random) -> None:
        keys = self.keys
        count = len(keys)
        key = keys[0]
        for _ in range(_TRIES):
            key = keys[int(draw.random() * count)]
            entry = self.entries[key]
            if not entry.used:
                break
            entry.used = False
        self.delete(key)


def _octets(key: bytes, entry: Entry) -> int:
    return len(entry.wire) + len(key) + _OVERHEAD + _OVERHEAD_PER_RECORD * len(entry.ttl_offsets)


class MemoryStore:
    """Entries of one instance, lost when the process ends; times are of the monotonic clock."""

    __slots__ = ("_count", "_events", "_limit", "_random", "_shards", "_tables", "wall_clock")

    def __init__(
        self,
        shard_count: int = 16,
        max_entries: int = 0,
        events: StoreEvents | None = None,
        draw: random.Random | None = None,
    ) -> None:
        """Make an empty store; `max_entries` 0 means no cap, `draw` chooses victims."""
        self.wall_clock = False
        self._count = shard_count
        self._limit = max_entries
        self._events = StoreEvents() if events is None else events
        self._random = random.Random() if draw is None else draw
        self._shards = tuple(_Shard() for _ in range(shard_count))
        self._tables = tuple(shard.entries for shard in self._shards)

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    @property
    def shard_count(self) -> int:
        """Number of shards."""
        return self._count

    @property
    def max_entries(self) -> int:
        """The cap on entries, 0 without one."""
        return self._limit

    @property
    def octets(self) -> int:
        """An estimate of the memory in use, in octets."""
        return sum(shard.octets for shard in self._shards)

    def get(self, key: bytes, now: float) -> Entry | None:
        """Return the fresh entry of `key`; takes no lock and removes nothing."""
        entry = self._tables[hash(key) % self._count].get(key)
        if entry is None or now >= entry.expires:
            return None
        entry.used = True
        return entry

    def put(self, key: bytes, entry: Entry, now: float) -> bool:
        """Store `entry`; at the cap, expired entries go first, then a victim (always True)."""
        index = hash(key) % self._count
        shard = self._shards[index]
        limit = self._limit
        victims = 0
        seconds = 0.0
        with shard.lock:
            if limit:
                old = shard.entries.get(key)
                if old is None or now >= old.expires:
                    shard.drop_expired(now, len(shard.keys))
                    if shard.keys and len(self) >= limit:
                        started = time.perf_counter()
                        shard.evict(self._random)
                        seconds = time.perf_counter() - started
                        victims = 1
            shard.insert(key, entry)
        if victims:
            self._events.evicted(victims, seconds)
        if limit and len(self) > limit:
            # another shard holds the excess: this one was empty, or other threads inserted too
            self._events.evicted(self._trim(limit, index + 1, now))
        return True

    def remove(self, key: bytes) -> None:
        """Remove the entry of `key`, if there is one."""
        shard = self._shards[hash(key) % self._count]
        with shard.lock:
            if key in shard.entries:
                shard.delete(key)

    def sweep(self, now: float, grace: float = 0.0) -> int:
        """Remove entries that expired `grace` seconds ago or earlier; returns how many.

        For a maintenance thread: a lock is never held for more than a few hundred removals.
        """
        removed = 0
        for shard in self._shards:
            while True:
                with shard.lock:
                    found = shard.drop_expired(now - grace, _BATCH)
                removed += found
                if found < _BATCH:
                    break
        return removed

    def set_max_entries(self, limit: int) -> None:
        """Change the cap; what is above it goes at once, soonest expiry first in each shard."""
        self._limit = limit
        if not limit:
            return
        for shard in self._shards:
            while True:
                excess = len(self) - limit
                if excess <= 0:
                    return
                with shard.lock:
                    if not shard.drop_expired(float("inf"), min(excess, _BATCH)):
                        break

    def gauges(self) -> Gauges:
        """Return entries and cap; the octets in use are not among the gauges of this type."""
        return Gauges(len(self), self._limit)

    def close(self) -> None:
        """Drop every entry."""
        for shard in self._shards:
            with shard.lock:
                shard.entries.clear()
                shard.keys.clear()
                shard.heap.clear()
                shard.octets = 0

    def _trim(self, limit: int, first: int, now: float) -> int:
        """Evict until the cap holds, beginning with shard `first`; returns how many went."""
        victims = 0
        for step in range(self._count):
            shard = self._shards[(first + step) % self._count]
            while len(self) > limit:
                with shard.lock:
                    if not shard.keys:
                        break
                    if not shard.drop_expired(now, len(shard.keys)):
                        shard.evict(self._random)
                        victims += 1
            if len(self) <= limit:
                break
        return victims
