"""The live cache instances of the process: they outlive snapshots and follow the configuration.

A `LiveCache` ties a store, its policy and its flights together; `CacheRegistry` opens, changes and
closes them as configurations come (chapter 40 sections 9 and 11).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from conduit.config import Cache, resolve_path
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

    def now(self, monotonic: float) -> float:
        """Return the time of the store's clock; `monotonic` is that of the transaction's."""
        return time.time() if self.store.wall_clock else monotonic

    def find(self, key: bytes, query: Query, is_tcp: bool, monotonic: float) -> Hit | None:
        """Return a reply for `query`, or None for a miss.

        Tries the complete answer, a truncated one for UDP clients, and the NXDOMAIN of a name
        above (RFC 8020).
        """
        store, policy = self.store, self.policy
        now = self.now(monotonic)
        entry = store.get(key, now)
        if entry is None and policy.truncated_ttl and not is_tcp:
            entry = store.get(truncated_key(key), now)
        if entry is None and policy.tries_ancestors:
            for ancestor in ancestor_keys(key):
                found = store.get(ancestor, now)
                if found is not None and found.covers_descendants:
                    entry = found
                    break
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
        key = truncated_key(owed.key) if built.truncated else owed.key
        stored = self.store.put(key, built, now)
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
        """Open what a configuration newly needs; returns the switch to it.

        Raises CacheError, having changed nothing, when a store cannot be opened.
        """
        opened: dict[str, LiveCache] = {}
        try:
            for config in configs:
                current = self._caches.get(config.name)
                if current is None or _needs_new_store(current, config, base_dir):
                    opened[config.name] = self._open(config, base_dir)
        except CacheError:
            for cache in opened.values():
                cache.store.close()
            raise
        return lambda: self._switch(configs, opened)

    def _open(self, config: Cache, base_dir: str) -> LiveCache:
        events = StoreEvents()
        store: Store
        if config.type == "lmdb":
            assert config.lmdb is not None
            path = resolve_path(base_dir, config.lmdb.path)
            try:
                store = LmdbStore(
                    config.name, path, config.lmdb, config.max_entries, self._concurrency, events
                )
            except CacheError as error:
                raise CacheError(f"cache '{config.name}': {error}") from error
        else:
            shards = config.memory_or_default().shard_count
            store = MemoryStore(shards, config.max_entries, events)
        cache = LiveCache(config.name, store, policy_of(config), events, config.type)
        cache.active = config.memory_or_default().eviction == "active"
        return cache

    def _switch(self, configs: Sequence[Cache], opened: Mapping[str, LiveCache]) -> None:
        caches: dict[str, LiveCache] = {}
        closing: list[Store] = []
        for config in configs:
            current = self._caches.get(config.name)
            fresh = opened.get(config.name)
            if current is None:
                assert fresh is not None
                caches[config.name] = fresh
                continue
            if fresh is not None:
                # flights go on over a change of the store
                closing.append(current.store)
                current.store, current.kind = fresh.store, fresh.kind
                current.events = fresh.events
            else:
                _change(current, config)
            current.policy = policy_of(config)
            caches[config.name] = current
        for name, cache in self._caches.items():
            if name not in caches:
                _log.info("cache closed; its files are kept", cache=name)
                closing.append(cache.store)
        self._caches = caches
        for store in closing:
            store.close()

    def _sweep(self) -> None:
        turn = 0
        while not self._stop_requested.wait(1.0):
            turn += 1
            for cache in list(self._caches.values()):
                # passive eviction leaves expired entries alone for a while, not for ever
                if cache.active or turn % 30 == 0 or cache.kind == "lmdb":
                    try:
                        removed = cache.store.sweep(cache.now(self._clock()))
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


def _needs_new_store(cache: LiveCache, config: Cache, base_dir: str) -> bool:
    if cache.kind != config.type:
        return True
    store = cache.store
    if not isinstance(store, LmdbStore) or config.lmdb is None:
        return False
    return store.path != resolve_path(base_dir, config.lmdb.path)


def _change(cache: LiveCache, config: Cache) -> None:
    """Apply the hot settings of an instance that keeps its store."""
    store = cache.store
    store.set_max_entries(config.max_entries)
    if isinstance(store, LmdbStore) and config.lmdb is not None:
        store.set_eviction(config.lmdb)
        try:
            if config.lmdb.map_size != store.map_size:
                store.set_map_size(config.lmdb.map_size)
            store.set_sync(config.lmdb)
        except CacheError as error:
            _log.error("cache change failed, the old setting stays", cache=cache.name, error=error)
