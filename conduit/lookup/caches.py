"""The live cache instances of the process: they outlive snapshots and follow the configuration.

A `LiveCache` ties a store, its policy and its flights together; `CacheRegistry` opens, changes and
closes them as configurations come (chapter 40 sections 9 and 11).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from conduit.config import Cache, resolve_path
from conduit.config.model_policy import LmdbStore as LmdbSettings
from conduit.lookup.cache.entry import Entry, Refusal, build_entry
from conduit.lookup.cache.errors import CacheError
from conduit.lookup.cache.keys import ancestor_keys, truncated_key
from conduit.lookup.cache.lmdb_store import LmdbStore
from conduit.lookup.cache.memory import MemoryStore
from conduit.lookup.cache.policy import CachePolicy, policy_of
from conduit.lookup.cache.serve import serve
from conduit.lookup.cache.single_flight import FlightTable, Leadership
from conduit.lookup.cache.store import Store, StoreEvents
from conduit.observe.logging import get_log
from conduit.wire import Query

_log = get_log("conduit_core")

#: Seconds between two removals of expired entries.
SWEEP_INTERVAL: Final = 5.0
#: Seconds that passive eviction leaves an expired entry alone: for a while, not for ever.
PASSIVE_GRACE: Final = 300.0


class Hit(NamedTuple):
    """A prepared reply and the entry it came from."""

    wire: bytes
    entry: Entry


class Fill(NamedTuple):
    """What a leader owes when its answer arrives."""

    cache: LiveCache
    key: bytes
    leadership: Leadership


class LiveCache:
    """One cache instance. Reads take no lock; `store` and `policy` are replaced as a whole."""

    def __init__(
        self, name: str, store: Store, policy: CachePolicy, events: StoreEvents, kind: str
    ) -> None:
        self.name = name
        self.kind = kind
        self.store = store
        self.policy = policy
        self.events = events
        self.flights = FlightTable()
        #: Remove expired entries soon, rather than long after their time.
        self.active = False
        #: the settings in force, of an LMDB store
        self.lmdb_settings: LmdbSettings | None = None

    def now(self, monotonic: float) -> float:
        """Return the time of the store's clock; `monotonic` is that of the transaction's."""
        return time.time() if self.store.wall_clock else monotonic

    def find(self, key: bytes, query: Query, is_tcp: bool, monotonic: float) -> Hit | None:
        """Return a reply for `query`, or None for a miss.

        Tries the complete answer, the NXDOMAIN of a name above (RFC 8020), and a truncated
        answer for UDP clients, in this order (section 6.1).
        """
        store, policy = self.store, self.policy
        now = self.now(monotonic)
        entry = store.get(key, now)
        if entry is None and policy.tries_ancestors:
            for ancestor in ancestor_keys(key):
                found = store.get(ancestor, now)
                if found is not None and found.covers_descendants:
                    entry = found
                    break
        if entry is None and policy.truncated_ttl and not is_tcp:
            entry = store.get(truncated_key(key), now)
        return None if entry is None else self.prepare(entry, query, is_tcp, now)

    def prepare(self, entry: Entry, query: Query, is_tcp: bool, now: float) -> Hit | None:
        """Return the reply to `query` from `entry`; a TCP client never gets a truncated one."""
        if is_tcp and entry.truncated:
            return None
        wire = serve(entry, query, now, random.randrange if self.policy.rotate else None)
        return None if wire is None else Hit(wire, entry)

    def fill(self, owed: Fill, query: Query, answer: bytes, is_tcp: bool, monotonic: float) -> bool:
        """Store a leader's answer and wake its followers; True when the store took it."""
        now = self.now(monotonic)
        built = build_entry(query, answer, now, self.policy, is_tcp)
        if isinstance(built, Refusal):
            if built is Refusal.UNCACHEABLE:
                # what was true before is not any more
                self.store.remove(owed.key)
            owed.leadership.uncacheable()
            return False
        sibling = truncated_key(owed.key)
        stored = self.store.put(sibling if built.truncated else owed.key, built, now)
        if stored and not built.truncated and self.policy.truncated_ttl:
            # after the insertion, so that there is no gap
            self.store.remove(sibling)
        owed.leadership.answered(built)
        return stored


class CacheRegistry:
    """All instances by name, and the thread that removes expired entries."""

    def __init__(self, concurrency: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`concurrency` is the number of threads that look up, for the shards of a new store."""
        self._concurrency = concurrency
        self._clock = clock
        self._caches: dict[str, LiveCache] = {}
        self._stop_requested = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="conduit-cache", daemon=True)

    def get(self, name: str) -> LiveCache | None:
        """Return an instance, or None when it is gone."""
        return self._caches.get(name)

    @property
    def caches(self) -> Mapping[str, LiveCache]:
        """All instances by name."""
        return self._caches

    def start(self) -> None:
        """Start the sweeper."""
        self._sweeper.start()

    def prepare(self, configs: Sequence[Cache], base_dir: str) -> Callable[[], None]:
        """Open and change what a configuration newly needs; returns the switch to it.

        Raises CacheError when a store cannot be opened or changed: nothing was replaced then, but
        a smaller map may have cost entries before it turned out to be too small.
        """
        opened: dict[str, LiveCache] = {}
        undo: list[Callable[[], None]] = []
        try:
            for config in configs:
                current = self._caches.get(config.name)
                if current is None or _needs_new_store(current, config, base_dir):
                    opened[config.name] = self._open(config, base_dir, current)
            for config in configs:
                if config.name not in opened:
                    undo.append(_change_lmdb(self._caches[config.name], config))
        except CacheError:
            for step in reversed(undo):
                step()
            for cache in opened.values():
                cache.store.close()
            raise
        return lambda: self._switch(configs, opened)

    def _open(self, config: Cache, base_dir: str, current: LiveCache | None) -> LiveCache:
        # counts of an instance go on over a change of its store
        events = StoreEvents() if current is None else current.events
        store: Store
        if config.type == "lmdb":
            assert config.lmdb is not None
            path = resolve_path(base_dir, config.lmdb.path)
            old = current.store if current is not None else None
            try:
                if isinstance(old, LmdbStore) and old.path == path:
                    store = old.open_replacement(config.lmdb, config.max_entries, events)
                else:
                    store = LmdbStore(
                        config.name,
                        path,
                        config.lmdb,
                        config.max_entries,
                        self._concurrency,
                        events,
                    )
            except CacheError as error:
                raise CacheError(f"cache '{config.name}': {error}") from error
        else:
            shards = config.memory_or_default().shard_count
            store = MemoryStore(shards, config.max_entries, events)
        cache = LiveCache(config.name, store, policy_of(config), events, config.type)
        cache.lmdb_settings = config.lmdb
        cache.active = _is_active(config)
        return cache

    def _switch(self, configs: Sequence[Cache], opened: Mapping[str, LiveCache]) -> None:
        caches: dict[str, LiveCache] = {}
        replaced: list[tuple[Store, Store]] = []
        for config in configs:
            current = self._caches.get(config.name)
            fresh = opened.get(config.name)
            if current is None:
                assert fresh is not None
                caches[config.name] = fresh
                continue
            if fresh is not None:
                # flights go on over a change of the store
                replaced.append((current.store, fresh.store))
                current.store, current.kind = fresh.store, fresh.kind
                current.lmdb_settings = fresh.lmdb_settings
            else:
                current.store.set_max_entries(config.max_entries)
            current.active = fresh.active if fresh is not None else _is_active(config)
            current.policy = policy_of(config)
            caches[config.name] = current
        for name, cache in self._caches.items():
            if name not in caches:
                _log.info("cache closed; its files are kept", cache=name)
                cache.store.close()
        self._caches = caches
        for old, new in replaced:
            if isinstance(new, LmdbStore) and isinstance(old, LmdbStore) and new.is_beside(old):
                new.take_place_of(old)
            else:
                old.close()

    def _sweep(self) -> None:
        while not self._stop_requested.wait(SWEEP_INTERVAL):
            for cache in list(self._caches.values()):
                grace = 0.0 if cache.active else PASSIVE_GRACE
                try:
                    removed = cache.store.sweep(cache.now(self._clock()), grace)
                except Exception:
                    _log.exception("cache sweep failed", cache=cache.name)
                    continue
                if cache.active and removed:
                    cache.events.reaped(removed)

    def close(self) -> None:
        """Close every store; LMDB syncs what is due."""
        self._stop_requested.set()
        for cache in self._caches.values():
            cache.store.close()


def _is_active(config: Cache) -> bool:
    return config.type == "memory" and config.memory_or_default().eviction == "active"


def _needs_new_store(cache: LiveCache, config: Cache, base_dir: str) -> bool:
    if cache.kind != config.type:
        return True
    store = cache.store
    if not isinstance(store, LmdbStore) or config.lmdb is None:
        return False
    return store.path != resolve_path(base_dir, config.lmdb.path) or store.wants_other_layout(
        config.lmdb
    )


def _change_lmdb(cache: LiveCache, config: Cache) -> Callable[[], None]:
    """Apply the hot settings that may fail; returns what takes them back. Raises CacheError."""
    store, new = cache.store, config.lmdb
    if not isinstance(store, LmdbStore) or new is None:
        return lambda: None
    old_size, old_settings = store.map_size, cache.lmdb_settings

    def undo() -> None:
        try:
            store.set_map_size(old_size)
            if old_settings is not None:
                store.set_sync(old_settings)
                store.set_eviction(old_settings)
        except CacheError as error:
            _log.error("cache change cannot be taken back", cache=cache.name, error=error)

    try:
        if new.map_size != old_size:
            store.set_map_size(new.map_size)
        try:
            store.set_sync(new)
        except CacheError:
            store.set_map_size(old_size)
            raise
    except CacheError as error:
        raise CacheError(f"cache '{cache.name}': {error}") from error
    store.set_eviction(new)
    cache.lmdb_settings = new
    return undo
