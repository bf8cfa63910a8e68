"""One LMDB environment: reads, writes with eviction, and changes of size and sync mode.

Reads take one lock and writes another, so a read never waits for a sync to disk; whatever needs the
environment without any transaction (resizing, reopening, closing) takes both. Source: chapter 40
section 7.2.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from conduit.lookup.cache.errors import CacheError
from conduit.lookup.cache.lmdb_eviction import REFUSE, EvictionRule
from conduit.lookup.cache.lmdb_files import PAGE
from conduit.lookup.cache.lmdb_format import (
    ENTRIES,
    FORMAT,
    FORMAT_VALUE,
    META,
    data_file,
    refuse_foreign,
)
from conduit.lookup.cache.lmdb_value import expires_at
from conduit.observe.logging import get_log

if TYPE_CHECKING:
    import lmdb

_log = get_log("conduit_core")

_COUNT: Final = b"entry_count"

# pages that a write may need beside those of its value: copies of the paths in three trees
_RESERVE_PAGES: Final = 24
# victims that one write may cost for want of pages
_MAX_VICTIMS: Final = 64
_BATCH: Final = 256


class Shard:
    """One environment; sizes are octets, times whole Unix seconds."""

    __slots__ = (
        "_db",
        "_env",
        "_legacy",
        "_lmdb",
        "_meta",
        "_read_lock",
        "_sync",
        "_write_lock",
        "count",
        "dirty",
        "limit",
        "map_size",
        "path",
        "rule",
    )

    def __init__(
        self, path: str, legacy: bool, map_size: int, limit: int, sync: str, rule: EvictionRule
    ) -> None:
        """Open or create the environment in the file `path` (`legacy`: the directory).

        Raises CacheError for a foreign or damaged environment, which stays as it is.
        """
        self._lmdb = importlib.import_module("lmdb")
        self.path = path
        self._legacy = legacy
        self.map_size = map_size
        self._sync = sync
        #: cap on entries, 0 without one
        self.limit = limit
        self.rule = rule
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        #: whether something was written since the last forced sync
        self.dirty = False
        self._env: lmdb.Environment | None = None
        try:
            refuse_foreign(path, legacy)
            self.count = self._open()
        except (self._lmdb.Error, OSError) as error:
            self.close()
            raise CacheError(
                f"LMDB cache file {path} cannot be opened: {error}. "
                "Move or delete the files to start empty"
            ) from error
        except CacheError:
            self.close()
            raise

    # opening

    def _open(self) -> int:
        """Open for writing; returns the number of entries."""
        env = self._lmdb.open(
            self.path,
            subdir=self._legacy,
            map_size=self.map_size,
            max_dbs=2,
            sync=self._sync in ("full", "no_meta"),
            metasync=self._sync != "no_meta",
            max_spare_txns=8,
            mode=0o640,
        )
        self._env = env
        self._meta = env.open_db(META)
        self._db = env.open_db(ENTRIES)
        with env.begin(write=True) as txn:
            if txn.get(FORMAT, db=self._meta) is None:
                txn.put(FORMAT, FORMAT_VALUE, db=self._meta)
            count = int(txn.stat(self._db)["entries"])
            self._store_count(txn, count)
        return count

    def _store_count(self, txn: lmdb.Transaction, count: int) -> None:
        value = count.to_bytes(8, "little")
        if txn.get(_COUNT, db=self._meta) != value:
            txn.put(_COUNT, value, db=self._meta)

    # the query path

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`; a read that fails is a logged miss."""
        with self._read_lock:
            if self._env is None:
                return None
            try:
                with self._env.begin(db=self._db) as txn:
                    found: bytes | None = txn.get(key)
                    return found
            except self._lmdb.Error as error:
                _log.warn("reading a cache file failed", path=self.path, error=error)
                return None

    def put(self, key: bytes, value: bytes, now: int) -> tuple[bool, int, float]:
        """Store a value; returns whether it was stored, the victims, and the seconds they took."""
        rule = self.rule
        victims = 0
        seconds = 0.0
        with self._write_lock:
            if self._env is None:
                return False, 0, 0.0
            try:
                started = time.perf_counter()
                wanted = self._missing_room(key, len(value))
                if wanted and rule.when_full == REFUSE:
                    _log.warn("cache file is full, answer not stored", path=self.path)
                    return False, 0, 0.0
                if wanted:
                    victims = self._make_room(key, len(value), now)
                    seconds = time.perf_counter() - started
                try:
                    self._write(key, value)
                except self._lmdb.MapFullError:
                    if rule.when_full == REFUSE:
                        _log.warn("cache file is full, answer not stored", path=self.path)
                        return False, victims, seconds
                    started = time.perf_counter()
                    victims += self._evict(1, now)
                    seconds += time.perf_counter() - started
                    self._write(key, value)
            except self._lmdb.Error as error:
                # no space on the device, a full map even after eviction, a damaged page
                _log.error("storing into a cache file failed", path=self.path, error=error)
                return False, victims, seconds
        return True, victims, seconds

    def delete(self, keys: list[bytes], now: int | None = None) -> int:
        """Remove keys, with `now` only those expired by then; returns how many went."""
        removed = 0
        with self._write_lock:
            if self._env is None:
                return 0
            try:
                with self._env.begin(write=True) as txn:
                    for key in keys:
                        value = None if now is None else txn.get(key, db=self._db)
                        if value is not None and now is not None and expires_at(value) > now:
                            continue
                        removed += txn.delete(key, db=self._db)
                    self._store_count(txn, self.count - removed)
                self.count -= removed
                self.dirty = True
            except self._lmdb.Error as error:
                _log.warn("removing from a cache file failed", path=self.path, error=error)
                return 0
        return removed

    # writing; the caller holds the write lock

    def _write(self, key: bytes, value: bytes) -> None:
        assert self._env is not None
        with self._env.begin(write=True) as txn:
            new = txn.get(key, db=self._db) is None
            txn.put(key, value, db=self._db)
            if new:
                self._store_count(txn, self.count + 1)
        self.count += new
        self.dirty = True

    def _missing_room(self, key: bytes, length: int) -> bool:
        """Whether the cap or the pages leave no room for a value of `length` octets."""
        if self.limit and self.count >= self.limit and not self._holds(key):
            return True
        return self._pages_wanted(length) > 0

    def _holds(self, key: bytes) -> bool:
        assert self._env is not None
        with self._env.begin(db=self._db) as txn:
            return txn.get(key) is not None

    def _pages_wanted(self, length: int) -> int:
        """Pages that a write of `length` octets may lack; 0 or less when there are enough."""
        assert self._env is not None
        pages = self.map_size // PAGE
        need = min(_RESERVE_PAGES, max(1, pages // 4)) + length // PAGE + 1
        if self._env.info()["last_pgno"] + 1 + need <= pages:
            return 0
        return self._used_pages() + need - pages

    def _make_room(self, key: bytes, length: int, now: int) -> int:
        victims = 0
        while victims < _MAX_VICTIMS and self.count and self._missing_room(key, length):
            found = self._evict(1, now)
            if not found:
                break
            victims += found
        return victims

    def _evict(self, count: int, now: int) -> int:
        """Remove victims; returns how many went."""
        assert self._env is not None
        removed = 0
        with self._env.begin(write=True) as txn:
            for _ in range(count):
                key = self.rule.victim(txn, self._db, now)
                if key is None:
                    break
                removed += txn.delete(key, db=self._db)
            self._store_count(txn, self.count - removed)
        self.count -= removed
        self.dirty = True
        return removed

    def _used_pages(self) -> int:
        assert self._env is not None
        used = 0
        with self._env.begin() as txn:
            for stat in (self._env.stat(), txn.stat(self._meta), txn.stat(self._db)):
                used += stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        # the two meta pages
        return used + 2

    # maintenance

    def used_bytes(self) -> int:
        """Octets in pages of the main database and both named ones."""
        with self._read_lock:
            if self._env is None:
                return 0
            return (self._used_pages() - 2) * PAGE

    def set_limit(self, limit: int, now: int) -> None:
        """Change the cap and evict at once what is above it. Failures are logged."""
        with self._write_lock:
            self.limit = limit
            try:
                while limit and self._env is not None and self.count > limit:
                    if not self._evict(min(_BATCH, self.count - limit), now):
                        break
            except self._lmdb.Error as error:
                _log.error("trimming a cache file failed", path=self.path, error=error)

    def force_sync(self) -> None:
        """Write everything to the disk if something was written since. Raises lmdb.Error."""
        with self._write_lock:
            if self._env is None or not self.dirty:
                return
            self.dirty = False
            try:
                self._env.sync(True)
            except self._lmdb.Error:
                self.dirty = True
                raise

    def set_map_size(self, map_size: int, now: int) -> None:
        """Change the size; entries go when a smaller one needs it. Raises CacheError."""
        with self._write_lock, self._read_lock:
            if self._env is None or map_size == self.map_size:
                return
            try:
                if (self._env.info()["last_pgno"] + 1) * PAGE > map_size:
                    self._shrink(map_size, now)
                else:
                    self._env.set_mapsize(map_size)
                    self.map_size = map_size
            except (self._lmdb.Error, OSError) as error:
                raise CacheError(
                    f"LMDB cache file {self.path} cannot be resized to {map_size}: {error}"
                ) from error

    def _shrink(self, map_size: int, now: int) -> None:
        """Evict until the rest fits, else drop everything; then rewrite the file without holes."""
        assert self._env is not None
        pages = map_size // PAGE
        reserve = min(_RESERVE_PAGES, max(1, pages // 4))
        while self.count and self._used_pages() + reserve > pages:
            if not self._evict(min(_BATCH, max(1, self.count // 8)), now):
                break
        if self._rewrite(map_size):
            return
        _log.warn("cache file emptied to fit its new size", path=self.path, map_size=map_size)
        with self._env.begin(write=True) as txn:
            txn.drop(self._db, delete=False)
            self._store_count(txn, 0)
        self.count = 0
        if not self._rewrite(map_size):
            raise CacheError(f"LMDB cache file {self.path} cannot shrink to {map_size} bytes")

    def _rewrite(self, map_size: int) -> bool:
        """Replace the file by a compact copy if that fits `map_size`."""
        assert self._env is not None
        file = data_file(self.path, self._legacy)
        copy = file + ".compact"
        try:
            descriptor = os.open(copy, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o640)
            try:
                self._env.copyfd(descriptor, compact=True)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if os.path.getsize(copy) > map_size:
                return False
            self._env.close()
            self._env = None
            os.replace(copy, file)
        finally:
            if os.path.exists(copy):
                os.unlink(copy)
            if self._env is None:
                old, self.map_size = self.map_size, map_size
                try:
                    self.count = self._open()
                except self._lmdb.Error:
                    self.map_size = old
                    self.count = self._open()
                    raise
        return True

    def set_sync(self, sync: str) -> None:
        """Change the sync mode; on failure the old one stays. Raises CacheError."""
        with self._write_lock, self._read_lock:
            if self._env is None or sync == self._sync:
                return
            old, self._sync = self._sync, sync
            try:
                self._env.sync(True)
                # the flags of an open environment cannot be changed from here
                self._env.close()
                self._env = None
                self._open()
                self.dirty = False
            except self._lmdb.Error as error:
                self._sync = old
                if self._env is None:
                    self._open()
                raise CacheError(
                    f"LMDB cache file {self.path} cannot change to sync {sync}: {error}"
                ) from error

    def close(self) -> None:
        """Close the environment; later reads miss and writes store nothing."""
        with self._write_lock, self._read_lock:
            if self._env is not None:
                self._env.close()
                self._env = None
