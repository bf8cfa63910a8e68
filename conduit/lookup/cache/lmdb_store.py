"""Keeps entries in LMDB files, so that they outlive the process (chapter 40 section 7.2).

The store spreads keys over shards, each an environment of its own. Times are whole seconds of the
wall clock. An expired entry that a read finds is a miss; the next maintenance removes it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from conduit.config.model_policy import LmdbStore as LmdbSettings
from conduit.lookup.cache import lmdb_files as files
from conduit.lookup.cache.entry import Entry
from conduit.lookup.cache.errors import CacheError
from conduit.lookup.cache.lmdb_eviction import EvictionRule
from conduit.lookup.cache.lmdb_flusher import Flusher
from conduit.lookup.cache.lmdb_shard import Shard
from conduit.lookup.cache.lmdb_value import decode_value, encode_value
from conduit.lookup.cache.shard_hash import key_hash
from conduit.lookup.cache.store import Gauges, StoreEvents
from conduit.observe.logging import get_log

_log = get_log("conduit_core")

PERIODIC: Final = "periodic"
# expired keys that wait for the next maintenance; more are found again by later reads
_MAX_PENDING: Final = 4096
# decoded values that are kept beside the files
_MAX_DECODED: Final = 8192


def shards_wanted(settings: LmdbSettings) -> int | None:
    """The explicit shard count within 1-64, None when the configuration leaves it open."""
    if settings.shard_count is None:
        return None
    return min(max(1, settings.shard_count), files.MAX_SHARDS)


class LmdbStore:
    """Entries of one instance in a directory; other processes are locked out of it."""

    __slots__ = (
        "_changes",
        "_clock",
        "_decoded",
        "_events",
        "_flusher",
        "_limit",
        "_lock",
        "_map_size",
        "_name",
        "_pending",
        "_shards",
        "_sync",
        "path",
        "wall_clock",
    )

    def __init__(
        self,
        name: str,
        path: str,
        settings: LmdbSettings,
        max_entries: int,
        concurrency: int,
        events: StoreEvents | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open or create the store of the cache `name` in the directory `path`.

        `settings.path` is not read: `path` is the resolved one. `concurrency` is the number of
        threads that look entries up; it gives the shard count of a new store. `max_entries` 0
        means no cap; `clock` gives Unix seconds. Raises CacheError when the directory is in use,
        or holds something that is not an intact store of this format.
        """
        self.wall_clock = True
        self._name = name
        self._events = StoreEvents() if events is None else events
        self._clock = clock
        self._limit = max_entries
        self._map_size = settings.map_size
        self._sync = settings.sync
        self._flusher: Flusher | None = None
        self._pending: deque[bytes] = deque(maxlen=_MAX_PENDING)
        # number of writes so far; counted after each, so that a reader never trusts too much
        self._changes = 0
        # what the values of lately read keys mean, and how many writes there were at the reading;
        # good for exactly that value, and without a look while nothing is written
        self._decoded: dict[bytes, tuple[bytes, Entry, int]] = {}
        self.path = path
        self._shards: tuple[Shard, ...] = ()
        files.prepare_directory(path)
        self._lock = files.DirectoryLock(path)
        try:
            self._open_shards(settings, concurrency)
            if self._sync == PERIODIC:
                self._flusher = self._start_flusher(settings)
        except BaseException:
            self.close()
            raise

    def _open_shards(self, settings: LmdbSettings, concurrency: int) -> None:
        path = self.path
        layout = files.detect_layout(path)
        wanted = shards_wanted(settings)
        if layout is not None and wanted is not None and layout.shards != wanted:
            _log.info(
                "cache files dropped for another shard count",
                cache=self._name,
                was=layout.shards,
                now=wanted,
            )
            files.remove_owned(path)
            layout = None
        if layout is not None:
            count, legacy = layout.shards, layout.legacy
        else:
            count, legacy = wanted or min(max(1, 2 * concurrency), files.MAX_SHARDS), False
        sizes = files.map_shares(settings.map_size, count)
        limits = files.entry_shares(self._limit, count)
        rule = EvictionRule(settings.policy_when_full, settings.sample_size)
        opened: list[Shard] = []
        try:
            for index in range(count):
                file = path if legacy else os.path.join(path, files.shard_name(index))
                opened.append(Shard(file, legacy, sizes[index], limits[index], self._sync, rule))
        finally:
            self._shards = tuple(opened)
        if not legacy:
            files.write_sidecar(path, count)

    def _start_flusher(self, settings: LmdbSettings) -> Flusher:
        interval = max(1, settings.sync_interval_ms) / 1000
        flusher = Flusher(self._name, self._shards, interval, self._events)
        try:
            flusher.start()
        except RuntimeError as error:
            raise CacheError(f"cache {self._name}: sync thread cannot start: {error}") from error
        return flusher

    def __len__(self) -> int:
        return sum([shard.count for shard in self._shards])

    @property
    def shard_count(self) -> int:
        """Number of environments."""
        return len(self._shards)

    @property
    def max_entries(self) -> int:
        """The cap on entries, 0 without one."""
        return self._limit

    def shard_of(self, key: bytes) -> Shard:
        """Return the shard that holds `key`."""
        shards = self._shards
        return shards[key_hash(key) % len(shards)] if len(shards) > 1 else shards[0]

    def get(self, key: bytes, now: float) -> Entry | None:
        """Return the fresh entry of `key`; a damaged value is a logged miss."""
        known = self._decoded.get(key)
        changes = self._changes
        if known is None or known[2] != changes:
            value = self.shard_of(key).get(key)
            if value is None:
                return None
            if known is None or known[0] != value:
                entry = decode_value(key, value)
                if entry is None:
                    _log.warn("stored answer cannot be used", cache=self._name)
                    return None
                if len(self._decoded) >= _MAX_DECODED:
                    self._decoded.clear()
            else:
                entry = known[1]
            self._decoded[key] = (value, entry, changes)
        else:
            entry = known[1]
        if int(now) >= entry.expires:
            self._pending.append(key)
            return None
        return entry

    def put(self, key: bytes, entry: Entry, now: float) -> bool:
        """Store `entry`; False when the store is full or writing failed (logged and counted)."""
        stored, victims, seconds = self.shard_of(key).put(key, encode_value(entry), int(now))
        self._changes += 1
        if victims:
            self._events.evicted(victims, seconds)
        if not stored:
            self._events.store_failed()
        return stored

    def remove(self, key: bytes) -> None:
        """Remove the entry of `key`, if there is one."""
        shard = self.shard_of(key)
        # a look costs much less than a write transaction
        if shard.get(key) is not None:
            shard.delete([key])
            self._changes += 1

    def sweep(self, now: float, grace: float = 0.0) -> int:
        """Remove the expired entries that reads have found; there is no search for others.

        For a maintenance thread: this writes. `grace` is of no use here.
        """
        waiting: dict[int, list[bytes]] = {}
        count = len(self._shards)
        for _ in range(len(self._pending)):
            key = self._pending.popleft()
            waiting.setdefault(key_hash(key) % count, []).append(key)
        removed = sum(self._shards[i].delete(keys, int(now)) for i, keys in waiting.items())
        self._changes += 1
        return removed

    def gauges(self) -> Gauges:
        """Return the state of the store as the metrics page shows it."""
        flusher = self._flusher
        return Gauges(
            entries=len(self),
            entries_limit=self._limit,
            bytes_used=sum([shard.used_bytes() for shard in self._shards]),
            bytes_limit=sum(files.map_shares(self._map_size, len(self._shards))),
            lmdb_shards=len(self._shards),
            lmdb_sync=self._sync,
            periodic_sync_age=None if flusher is None else flusher.age(),
        )

    # live changes

    def set_max_entries(self, limit: int) -> None:
        """Change the cap; what is above it goes at once, uncounted."""
        self._limit = limit
        now = int(self._clock())
        for shard, share in zip(
            self._shards, files.entry_shares(limit, len(self._shards)), strict=True
        ):
            shard.set_limit(share, now)
        self._changes += 1

    def set_eviction(self, settings: LmdbSettings) -> None:
        """Apply `when_full` and `sample_size`."""
        rule = EvictionRule(settings.policy_when_full, settings.sample_size)
        for shard in self._shards:
            shard.rule = rule

    @property
    def map_size(self) -> int:
        """The configured size of all shards together, in octets."""
        return self._map_size

    def set_map_size(self, map_size: int) -> None:
        """Change the size in octets; a smaller one may cost entries. Raises CacheError."""
        count = len(self._shards)
        now = int(self._clock())
        try:
            for shard, size in zip(self._shards, files.map_shares(map_size, count), strict=True):
                shard.set_map_size(size, now)
                self._changes += 1
        except CacheError:
            self._changes += 1
            for shard, size in zip(
                self._shards, files.map_shares(self._map_size, count), strict=True
            ):
                shard.set_map_size(size, now)
            raise
        self._map_size = map_size

    def set_sync(self, settings: LmdbSettings) -> None:
        """Apply `sync` and `sync_interval`; on failure the old mode stays. Raises CacheError."""
        old = self._sync
        if settings.sync == old:
            if self._flusher is not None:
                self._flusher.set_interval(max(1, settings.sync_interval_ms) / 1000)
            return
        changed: list[Shard] = []
        flusher = None
        try:
            for shard in self._shards:
                shard.set_sync(settings.sync)
                changed.append(shard)
            if settings.sync == PERIODIC:
                flusher = self._start_flusher(settings)
        except CacheError:
            for shard in changed:
                shard.set_sync(old)
            raise
        left, self._flusher = self._flusher, flusher
        self._sync = settings.sync
        if left is not None:
            left.stop()

    def wants_other_layout(self, settings: LmdbSettings) -> bool:
        """Whether an explicit shard count asks for files other than these."""
        wanted = shards_wanted(settings)
        return wanted is not None and wanted != len(self._shards)

    def open_replacement(
        self, settings: LmdbSettings, max_entries: int, events: StoreEvents | None = None
    ) -> LmdbStore:
        """Open an empty store of another layout beside this one, which goes on serving.

        `take_place_of` ends the change, `close` gives it up. Raises CacheError.
        """
        beside = files.reopen_path(self.path)
        if os.path.lexists(beside):
            files.remove_tree(beside)
        return LmdbStore(self._name, beside, settings, max_entries, 1, events, self._clock)

    def is_beside(self, old: LmdbStore) -> bool:
        """Whether this is a replacement of `old` that has not taken its place yet."""
        return self.path == files.reopen_path(old.path)

    def take_place_of(self, old: LmdbStore) -> None:
        """Close `old`, drop its files and move to its directory.

        Call it when no query finds `old` any more. A failure is an error in the log; this store
        then serves from where it is.
        """
        old.close()
        path = old.path
        abandoned = files.abandoned_path(path)
        try:
            os.rename(path, abandoned)
            os.rename(self.path, path)
        except OSError as error:
            _log.error("cache files cannot be exchanged", path=path, error=error)
            return
        for shard in self._shards:
            shard.path = path + shard.path[len(self.path) :]
        self.path = path
        files.remove_tree(abandoned)

    def close(self) -> None:
        """Sync what is due, close every file and free the directory."""
        if self._flusher is not None:
            self._flusher.stop()
            self._flusher = None
        for shard in self._shards:
            shard.close()
        # later calls find nothing
        self._decoded = {}
        self._changes += 1
        self._lock.release()
