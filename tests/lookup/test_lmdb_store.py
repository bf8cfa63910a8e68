"""The LMDB store: expiry, caps, full maps, live changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conduit.config.model_policy import LmdbStore as Settings
from conduit.lookup.cache.entry import Entry, Kind
from conduit.lookup.cache.errors import CacheError
from conduit.lookup.cache.lmdb_files import entry_shares, map_shares
from conduit.lookup.cache.lmdb_store import LmdbStore
from conduit.lookup.cache.lmdb_value import decode_value, encode_value
from conduit.lookup.cache.serve import serve
from conduit.lookup.cache.shard_hash import key_hash
from conduit.lookup.cache.store import StoreEvents
from tests.lookup.messages import key_of, parse, query, reply, stored, ttls

pytest.importorskip("lmdb")

NOW = 1_700_000_000
SMALL = 400_000


class Opened:
    """Opens stores below one directory on one wall clock, and closes them with the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = float(NOW)
        self.events = StoreEvents()
        self.stores: list[LmdbStore] = []

    def __call__(
        self, name: str = "cache", limit: int = 0, concurrency: int = 1, **keys: Any
    ) -> LmdbStore:
        keys.setdefault("sync", "none")
        keys.setdefault("map_size", 8_000_000)
        settings = Settings(path="unused", **keys)
        path = str(self.directory / name)
        store = LmdbStore(
            "global", path, settings, limit, concurrency, self.events, lambda: self.now
        )
        self.stores.append(store)
        return store


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    openings = Opened(tmp_path)
    yield openings
    for store in openings.stores:
        store.close()


def fill(
    store: LmdbStore, numbers: range, ttl: int = 300, now: int = NOW, size: int = 0
) -> list[bool]:
    done = []
    for number in numbers:
        asked = query(f"n{number:05}.test", "TXT")
        texts = " ".join([f'"{number:05}{"x" * 200}"'] * (size // 200 + 1))
        entry = stored(asked, reply(asked, [f"n{number:05}.test. {ttl} TXT {texts}"]), now)
        done.append(store.put(key_of(asked), entry, now))
    return done


def held(store: LmdbStore, numbers: range, now: int = NOW) -> list[int]:
    return [n for n in numbers if store.get(key_of(query(f"n{n:05}.test", "TXT")), now)]


def test_ch40_section_7_2_hash_vectors() -> None:
    assert key_hash(b"") == 0xBD60ACB658C79E45
    assert key_hash(b"k1") == 0xAC94FE4AF1E6FD35
    assert key_hash(b"stable-key") == 0xA2FD2D76728FB74B
    assert key_hash(key_of(query("www.example.com"))) == 0xB924D13F8D0037BF
    assert key_hash(key_of(query("www.example.com"))) % 4 == 3


def test_ch40_example_34_a_value_begins_as_the_originals_does() -> None:
    asked = query("a.test")
    answer = reply(asked, ["a.test. 300 A 192.0.2.1"])
    entry = stored(asked, answer, NOW)
    value = encode_value(entry)
    head = bytes.fromhex("00f1536500000000 2cf2536500000000 00")
    assert value.startswith(head + len(answer).to_bytes(4, "little") + answer)


def test_values_of_the_original_are_read_and_damaged_ones_are_not() -> None:
    asked = query("a.test", use_edns=0)
    answer = reply(asked, ["a.test. 300 A 192.0.2.1"], edns=True)
    value = encode_value(stored(asked, answer, NOW))
    key = key_of(asked)
    theirs = value[: 21 + len(answer)]
    for read in (value, theirs, theirs + b"anything"):
        entry = decode_value(key, read)
        assert entry is not None
        assert ttls(serve(entry, asked, NOW + 40)) == [260]
    for at in range(len(value)):
        damaged = value[:at] + bytes((value[at] ^ 0x10,)) + value[at + 1 :]
        found = decode_value(key, damaged)
        if found is not None:
            # the mark of our part of the value: what is left is a value of the original
            assert 21 + len(answer) <= at < 25 + len(answer)
            assert found.wire == answer
    for end in range(len(theirs)):
        assert decode_value(key, value[:end]) is None


def test_what_must_not_be_served_is_not_read_from_the_originals_files() -> None:
    asked = query("a.test")
    for answer in (reply(asked, rcode=5), reply(asked, rcode=16, edns=True), b"\0" * 40):
        entry = Entry(answer, NOW, NOW + 60, Kind.POSITIVE, 24, len(answer), (), b"")
        value = encode_value(entry)[: 21 + len(answer)]
        assert decode_value(key_of(asked), value) is None


def test_options_survive_the_file(opened: Opened) -> None:
    import dns.edns

    subnet = dns.edns.ECSOption("192.0.2.0", 24, 20)
    asked = query("a.test", use_edns=0, options=[dns.edns.ECSOption("192.0.2.0", 24)])
    answer = reply(asked, ["a.test. 300 A 192.0.2.1"], options=[subnet])
    store = opened()
    store.put(key_of(asked), stored(asked, answer, NOW), NOW)
    entry = store.get(key_of(asked), NOW + 1)
    assert entry is not None
    assert parse(serve(entry, asked, NOW + 1)).options == (subnet,)


def test_an_expired_entry_is_a_miss_and_goes_with_the_next_sweep(opened: Opened) -> None:
    store = opened()
    fill(store, range(10))
    assert held(store, range(10), NOW + 299) == list(range(10))
    assert held(store, range(10), NOW + 300) == []
    assert len(store) == 10
    # one was filled again in the meantime
    fill(store, range(1), now=NOW + 300)
    assert store.sweep(NOW + 300) == 9
    assert held(store, range(10), NOW + 301) == [0]
    assert len(store) == 1
    assert store.sweep(NOW + 301) == 0


def test_remove(opened: Opened) -> None:
    store = opened()
    fill(store, range(3))
    store.remove(key_of(query("n00001.test", "TXT")))
    store.remove(key_of(query("unknown.test")))
    assert held(store, range(3)) == [0, 2]
    assert len(store) == 2


def test_ch40_example_32_map_size_in_pages_over_shards(opened: Opened) -> None:
    shares = map_shares(1_000_000_000, 4)
    assert shares == [250_003_456, 249_999_360, 249_999_360, 249_999_360]
    store = opened(map_size=1_000_000_000, shard_count=4)
    assert store.gauges().bytes_limit == 1_000_001_536
    assert store.gauges().lmdb_shards == 4


def test_ch40_example_33_cap_over_shards() -> None:
    assert entry_shares(5, 3) == [2, 2, 1]
    assert entry_shares(0, 3) == [0, 0, 0]
    assert entry_shares(2, 3) == [1, 1, 1]


@pytest.mark.parametrize("when_full", ["evict_one", "sample", "refuse"])
def test_the_cap(opened: Opened, when_full: str) -> None:
    store = opened(limit=5, shard_count=1, when_full=when_full)
    fill(store, range(5))
    done = fill(store, range(5, 8))
    assert len(store) == 5
    if when_full == "refuse":
        assert done == [False] * 3
        assert held(store, range(8)) == list(range(5))
        assert (opened.events.when_full, opened.events.lmdb_errors) == (0, 3)
    else:
        assert done == [True] * 3
        assert held(store, range(8)) == [3, 4, 5, 6, 7]
        assert opened.events.when_full == 3
    # replacing costs nothing
    newest = held(store, range(8))[-1]
    before = opened.events.when_full
    assert fill(store, range(newest, newest + 1), ttl=999) == [True]
    assert opened.events.when_full == before


def test_evict_one_takes_the_first_key(opened: Opened) -> None:
    store = opened(limit=3, shard_count=1)
    fill(store, range(3))
    fill(store, range(3, 4))
    assert held(store, range(4)) == [1, 2, 3]


def test_sample_takes_an_expired_key_or_the_soonest_to_expire(opened: Opened) -> None:
    store = opened(limit=4, shard_count=1, when_full="sample", sample_size=4)
    for number, ttl in enumerate((400, 100, 300, 200)):
        fill(store, range(number, number + 1), ttl=ttl)
    fill(store, range(4, 5), ttl=500)
    assert held(store, range(5)) == [0, 2, 3, 4]
    fill(store, range(5, 6), ttl=500, now=NOW + 350)
    assert held(store, range(6), NOW + 399) == [0, 4, 5]
    # only the first two are looked at
    store.set_eviction(
        Settings(path="x", map_size=1, when_full="sample", sample_size=2, shard_count=1)
    )
    fill(store, range(6, 7), ttl=500, now=NOW + 350)
    assert len(store) == 4


def test_ch40_section_11_a_lowered_cap_evicts_at_once(opened: Opened) -> None:
    store = opened(shard_count=3)
    fill(store, range(60))
    store.set_max_entries(10)
    assert len(store) == 10
    assert store.gauges().entries_limit == 10
    assert opened.events.when_full == 0
    store.set_max_entries(0)
    fill(store, range(60))
    assert len(store) == 60


@pytest.mark.parametrize("when_full", ["evict_one", "sample", "refuse"])
def test_a_full_map_is_survived_and_counted(opened: Opened, when_full: str) -> None:
    store = opened(map_size=SMALL, shard_count=1, when_full=when_full)
    done = fill(store, range(300), size=2000)
    assert len(store) == len(held(store, range(300)))
    assert store.gauges().bytes_used <= SMALL
    if when_full == "refuse":
        assert not all(done)
        assert done[:20] == [True] * 20
        assert opened.events.lmdb_errors == done.count(False)
        assert opened.events.when_full == 0
    else:
        assert done == [True] * 300
        assert opened.events.when_full == 300 - len(store)
        assert held(store, range(299, 300)) == [299]
        # it goes on: entries of other sizes, for as long as one likes
        assert all(fill(store, range(300, 500), size=12_000))
        assert all(fill(store, range(500, 900)))


def test_an_entry_larger_than_the_map_is_refused(opened: Opened) -> None:
    store = opened(map_size=60_000, shard_count=1)
    assert fill(store, range(1), size=60_000) == [False]
    assert opened.events.lmdb_errors == 1
    assert fill(store, range(1, 2)) == [True]


def test_a_full_disk_is_survived_and_counted(opened: Opened) -> None:
    """A file-size limit makes writes fail as a full disk does."""
    import resource
    import signal

    store = opened(map_size=8_000_000, shard_count=1)
    fill(store, range(20))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(store.path + "/shard-0"), hard))
    try:
        done = fill(store, range(20, 200), size=2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert done[-1] is False
    assert opened.events.lmdb_errors == done.count(False)
    assert held(store, range(20)) == list(range(20))
    assert len(store) == 20 + done.count(True)
    # there is room again
    assert fill(store, range(200, 210)) == [True] * 10
    assert held(store, range(200, 210)) == list(range(200, 210))


def test_growing_the_map_keeps_entries_and_makes_room(opened: Opened) -> None:
    store = opened(map_size=SMALL, shard_count=1, when_full="refuse")
    fill(store, range(300), size=2000)
    kept = held(store, range(300))
    store.set_map_size(4_000_000)
    assert store.map_size == 4_000_000
    assert held(store, range(300)) == kept
    assert all(fill(store, range(300), size=2000))


def test_shrinking_the_map_keeps_what_fits(opened: Opened) -> None:
    store = opened(map_size=4_000_000, shard_count=2)
    fill(store, range(400), size=2000)
    store.set_map_size(1_000_000)
    assert 100 < len(store) < 400
    assert len(held(store, range(400))) == len(store)
    assert sum(os.path.getsize(f"{store.path}/shard-{n}") for n in (0, 1)) <= 1_000_000
    assert all(fill(store, range(400, 800), size=2000))
    assert store.gauges().bytes_limit == 1_003_520
    store.set_map_size(4_000_000)
    assert all(fill(store, range(400), size=2000))


def test_a_size_that_one_shard_cannot_take_is_rejected_for_all(opened: Opened) -> None:
    store = opened(map_size=4_000_000, shard_count=2)
    fill(store, range(400), size=2000)
    # an empty environment takes four pages; of seven, the second shard gets three
    with pytest.raises(CacheError, match="cannot shrink"):
        store.set_map_size(7 * 4096)
    assert store.map_size == 4_000_000
    assert [shard.map_size for shard in store._shards] == map_shares(4_000_000, 2)
    assert all(fill(store, range(100), size=2000))


@pytest.mark.parametrize("sync", ["full", "no_meta", "none", "periodic"])
def test_sync_modes_change_live(opened: Opened, sync: str) -> None:
    store = opened(shard_count=2)
    fill(store, range(10))
    interval = "1000s" if sync == "periodic" else None
    store.set_sync(Settings(path="x", map_size=1, sync=sync, sync_interval=interval))
    assert store.gauges().lmdb_sync == sync
    assert held(store, range(10)) == list(range(10))
    assert all(fill(store, range(10, 20)))
    names = [thread.name for thread in threading.enumerate()]
    assert ("conduit-lmdb-sync-global" in names) == (sync == "periodic")
    store.set_sync(Settings(path="x", map_size=1, sync="none"))
    assert held(store, range(20)) == list(range(20))
    assert "conduit-lmdb-sync-global" not in [thread.name for thread in threading.enumerate()]


def test_a_periodic_tick_syncs_what_was_written(opened: Opened) -> None:
    ticks: list[float] = []
    opened.events.on_sync_duration = ticks.append
    store = opened(shard_count=2, sync="periodic", sync_interval="1000s")
    assert store.gauges().periodic_sync_age is None
    flusher = store._flusher
    assert flusher is not None
    fill(store, range(10))
    assert any(shard.dirty for shard in store._shards)
    assert flusher.tick()
    assert not any(shard.dirty for shard in store._shards)
    assert len(ticks) == 1
    age = store.gauges().periodic_sync_age
    assert age is not None
    assert 0 <= age < 60


def test_a_failed_sync_is_counted_and_tried_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(shard_count=2, sync="periodic", sync_interval="1000s")
    flusher = store._flusher
    assert flusher is not None
    fill(store, range(10))
    broken = store._shards[0]
    real = broken._env

    class Broken:
        def sync(self, force: bool) -> None:
            import lmdb

            raise lmdb.DiskError("no space")

    monkeypatch.setattr(broken, "_env", Broken())
    assert not flusher.tick()
    assert opened.events.sync_failures == 1
    assert [shard.dirty for shard in store._shards] == [True, False]
    monkeypatch.setattr(broken, "_env", real)
    assert flusher.tick()
    assert not broken.dirty


def test_the_flusher_thread_ticks_at_its_interval(opened: Opened) -> None:
    ticked = threading.Event()
    opened.events.on_sync_duration = lambda seconds: ticked.set()
    store = opened(shard_count=1, sync="periodic", sync_interval="1000s")
    assert not ticked.is_set()
    store.set_sync(Settings(path="x", map_size=1, sync="periodic", sync_interval="1ms"))
    assert ticked.wait(10)


def test_threads_read_while_others_write_resize_and_reopen(opened: Opened) -> None:
    store = opened(shard_count=2, map_size=2_000_000, limit=150)
    fill(store, range(100))
    failures: list[BaseException] = []
    stop = threading.Event()

    def run(work: Any) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=run, args=(work,))
        for work in (
            lambda: held(store, range(100)),
            lambda: held(store, range(50, 200)),
            lambda: fill(store, range(100, 200)),
            lambda: store.gauges(),
        )
    ]
    for thread in threads:
        thread.start()
    for turn in range(20):
        store.set_map_size(2_000_000 + 40_960 * (turn % 3))
        store.set_sync(Settings(path="x", map_size=1, sync=("none", "no_meta")[turn % 2]))
        store.set_max_entries(100 + turn)
        store.sweep(NOW)
    store.close()
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert held(store, range(100)) == []
    assert fill(store, range(1)) == [False]
