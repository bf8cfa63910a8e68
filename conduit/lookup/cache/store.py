"""What every store of entries offers to a cache instance, and what it reports of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from conduit.lookup.cache.entry import Entry

#: Reasons of evictions, as the label `reason`.
WHEN_FULL: Final = "when_full"
ACTIVE_REAPER: Final = "active_reaper"


class StoreEvents:
    """Counts of one instance that survive a change of its store, and where durations go.

    Counting takes a lock: nothing here happens on a hit.
    """

    __slots__ = (
        "_lock",
        "active_reaper",
        "lmdb_errors",
        "on_eviction_duration",
        "on_sync_duration",
        "sync_failures",
        "when_full",
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: entries evicted because the cap or the map was reached
        self.when_full = 0
        #: expired entries removed by the reaper of `eviction: active`
        self.active_reaper = 0
        #: answers that an LMDB store did not take (reason `capacity_pressure`)
        self.lmdb_errors = 0
        #: failed syncs of `sync: periodic`
        self.sync_failures = 0
        #: called with seconds, when set
        self.on_eviction_duration: Callable[[float], None] | None = None
        #: called with seconds, when set
        self.on_sync_duration: Callable[[float], None] | None = None

    def evicted(self, count: int, seconds: float | None = None) -> None:
        """Count evictions for want of room and, when measured, the seconds they took."""
        with self._lock:
            self.when_full += count
        if seconds is not None and self.on_eviction_duration is not None:
            self.on_eviction_duration(seconds)

    def reaped(self, count: int) -> None:
        """Count expired entries removed by the active reaper."""
        with self._lock:
            self.active_reaper += count

    def store_failed(self) -> None:
        """Count an answer that an LMDB store did not take."""
        with self._lock:
            self.lmdb_errors += 1

    def sync_failed(self) -> None:
        """Count a failed periodic sync."""
        with self._lock:
            self.sync_failures += 1

    def synced(self, seconds: float) -> None:
        """Note one tick of the periodic flusher."""
        if self.on_sync_duration is not None:
            self.on_sync_duration(seconds)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What the metrics page shows of an instance (chapter 40 section 13)."""

    #: expired entries that were not removed yet included
    entries: int
    #: 0 without a cap
    entries_limit: int
    #: octets in the LMDB files; 0 for memory
    bytes_used: int = 0
    #: octets of the aligned map size; 0 for memory
    bytes_limit: int = 0
    #: 0 for memory
    lmdb_shards: int = 0
    #: the sync mode; None for memory
    lmdb_sync: str | None = None
    #: seconds since the last periodic sync without a failure; None before it and in other modes
    periodic_sync_age: float | None = None


class Store(Protocol):
    """A bounded map from keys to entries. All times are seconds of the store's clock."""

    #: True when `now` is wall-clock time in whole seconds, False for the monotonic clock
    wall_clock: bool

    def get(self, key: bytes, now: float) -> Entry | None:
        """Return the entry of `key` while `now` is before its expiry."""
        ...

    def put(self, key: bytes, entry: Entry, now: float) -> bool:
        """Store an entry, evicting as configured; False when it was not stored."""
        ...

    def remove(self, key: bytes) -> None:
        """Remove the entry of `key`, if there is one."""
        ...

    def sweep(self, now: float, grace: float = 0.0) -> int:
        """Remove entries that expired at least `grace` seconds ago; returns how many."""
        ...

    def set_max_entries(self, limit: int) -> None:
        """Change the cap (0: none); above a lower one, entries go at once and uncounted."""
        ...

    def gauges(self) -> Gauges:
        """Return the state of the store as the metrics page shows it."""
        ...

    def close(self) -> None:
        """Give up what the store holds open; later calls find and store nothing."""
        ...

    def __len__(self) -> int:
        """Entries, expired ones that were not removed yet included."""
        ...
