"""The memory store: bounds, victims, expiry, and a model that it must agree with."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from conduit.lookup.cache.entry import Entry, Kind
from conduit.lookup.cache.memory import MemoryStore
from conduit.lookup.cache.store import StoreEvents


def entry(expires: float, stored: float = 0.0) -> Entry:
    return Entry(bytes(60), stored, expires, Kind.POSITIVE, 20, 60, (6,), b"")


def key(number: int) -> bytes:
    return b"key-%d" % number


def filled(store: MemoryStore, numbers: range, expires: float = 100.0, now: float = 0.0) -> None:
    for number in numbers:
        assert store.put(key(number), entry(expires, now), now)


def held(store: MemoryStore, numbers: range, now: float = 0.0) -> list[int]:
    return [number for number in numbers if store.get(key(number), now) is not None]


def test_ch40_example_04_an_entry_is_gone_at_exactly_its_ttl() -> None:
    store = MemoryStore()
    store.put(key(1), entry(300.0), 0.0)
    assert store.get(key(1), 299.999) is not None
    assert store.get(key(1), 300.0) is None
    # reading removes nothing
    assert len(store) == 1


def test_ch40_example_27_the_cap_costs_a_victim_and_keeps_the_newest() -> None:
    for shards in (1, 2, 16):
        events = StoreEvents()
        store = MemoryStore(shards, 2, events)
        filled(store, range(3))
        assert len(store) == 2
        assert events.when_full == 1
        assert store.get(key(2), 0.0) is not None


def test_ch40_example_28_a_lowered_cap_holds_at_once_and_counts_nothing() -> None:
    events = StoreEvents()
    store = MemoryStore(16, 0, events)
    filled(store, range(1000))
    store.set_max_entries(10)
    assert len(store) == 10
    assert store.gauges().entries_limit == 10
    assert events.when_full == 0
    store.set_max_entries(0)
    filled(store, range(1000))
    assert len(store) == 1000


def test_a_lowered_cap_takes_what_expires_first() -> None:
    store = MemoryStore(1)
    for number in range(100):
        store.put(key(number), entry(float(100 + (number * 37) % 100)), 0.0)
    store.set_max_entries(30)
    left = [number for number in range(100) if 100 + (number * 37) % 100 >= 170]
    assert held(store, range(100)) == left


def test_ch40_example_29_a_sweep_removes_what_has_expired_and_nothing_else() -> None:
    store = MemoryStore()
    filled(store, range(50), expires=1.0)
    filled(store, range(50, 60), expires=100.0)
    assert store.sweep(0.999) == 0
    assert store.sweep(7.0, grace=6.5) == 0
    assert store.sweep(7.0) == 50
    assert held(store, range(60), 7.0) == list(range(50, 60))


def test_a_sweep_of_thousands_clears_every_shard() -> None:
    store = MemoryStore(3)
    filled(store, range(5000), expires=1.0)
    assert store.sweep(1.0) == 5000
    assert (len(store), store.octets) == (0, 0)


def test_expired_entries_go_before_fresh_ones_and_are_no_evictions() -> None:
    events = StoreEvents()
    store = MemoryStore(1, 10, events)
    filled(store, range(9), expires=100.0)
    store.put(key(9), entry(5.0), 0.0)
    store.put(key(10), entry(100.0), 6.0)
    assert held(store, range(11), 6.0) == [*range(9), 10]
    assert events.when_full == 0


def test_a_fresh_entry_is_replaced_without_a_victim() -> None:
    events = StoreEvents()
    store = MemoryStore(2, 4, events)
    filled(store, range(4))
    newer = entry(200.0)
    store.put(key(3), newer, 1.0)
    assert store.get(key(3), 1.0) is newer
    assert (len(store), events.when_full) == (4, 0)
    # the old expiry no longer counts
    assert store.sweep(150.0) == 3
    assert store.get(key(3), 150.0) is newer


def test_a_victim_is_no_entry_that_was_just_hit() -> None:
    store = MemoryStore(1, 100, draw=random.Random(1))
    filled(store, range(100))
    for number in range(100, 150):
        assert held(store, range(10)) == list(range(10))
        filled(store, range(number, number + 1))


def test_churn_of_4096_names_over_2048_entries_keeps_half_of_the_hits() -> None:
    draw = random.Random(40)
    store = MemoryStore(16, 2048, draw=random.Random(41))
    hits = asked = 0
    for turn in range(60_000):
        name = key(draw.randrange(4096))
        if store.get(name, 0.0) is None:
            store.put(name, entry(100.0), 0.0)
        elif turn >= 20_000:
            hits += 1
        asked += turn >= 20_000
    assert 0.45 <= hits / asked <= 0.52


def test_a_scan_over_more_names_than_the_cap_still_hits() -> None:
    store = MemoryStore(16, 2048, draw=random.Random(42))
    hits = 0
    for turn in range(8 * 4096):
        name = key(turn % 4096)
        if store.get(name, 0.0) is None:
            store.put(name, entry(100.0), 0.0)
        else:
            hits += 1
    assert hits > 0.1 * 7 * 4096


def test_replacing_one_entry_for_ever_takes_no_memory() -> None:
    store = MemoryStore(1)
    for turn in range(10_000):
        store.put(key(1), entry(1e6 + turn), 0.0)
    assert len(store._shards[0].heap) < 200
    assert store.octets < 1000


def test_100_000_entries_are_estimated_below_120_megabytes() -> None:
    store = MemoryStore()
    for number in range(1000):
        store.put(key(number), entry(100.0), 0.0)
    assert 300 < store.octets / 1000 < 1200


def test_close_forgets_everything() -> None:
    store = MemoryStore()
    filled(store, range(10))
    store.close()
    assert (len(store), held(store, range(10)), store.octets) == (0, [], 0)


@pytest.mark.parametrize("shards", [1, 16])
def test_threads_at_the_cap_neither_deadlock_nor_exceed_it(shards: int) -> None:
    store = MemoryStore(shards, 64)
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def work(seed: int) -> None:
        draw = random.Random(seed)
        start.wait()
        try:
            for turn in range(3000):
                name = key(draw.randrange(300))
                if draw.random() < 0.4:
                    store.get(name, 0.0)
                elif draw.random() < 0.1:
                    store.remove(name)
                elif draw.random() < 0.02:
                    store.sweep(float(turn % 50))
                else:
                    store.put(name, entry(float(draw.randrange(1, 100))), 0.0)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert len(store) <= 64
    for shard in store._shards:
        assert sorted(shard.keys) == sorted(shard.entries)
        assert all(shard.keys[held.slot] == name for name, held in shard.entries.items())


class StoreAgainstModel(RuleBasedStateMachine):
    """The store may forget fresh entries only at its cap; it never invents or revives any."""

    def __init__(self) -> None:
        super().__init__()
        self.events = StoreEvents()
        self.store = MemoryStore(3, 0, self.events)
        self.model: dict[bytes, Entry] = {}
        self.now = 0.0
        self.limit = 0

    @rule(number=st.integers(0, 12), ttl=st.integers(1, 9))
    def put(self, number: int, ttl: int) -> None:
        made = entry(self.now + ttl, self.now)
        assert self.store.put(key(number), made, self.now)
        self.model[key(number)] = made
        assert self.store.get(key(number), self.now) is made

    @rule(number=st.integers(0, 12))
    def get(self, number: int) -> None:
        found = self.store.get(key(number), self.now)
        expected = self.model.get(key(number))
        if expected is not None and self.now >= expected.expires:
            expected = None
        if self.limit and found is None:
            return
        assert found is expected

    @rule(number=st.integers(0, 12))
    def remove(self, number: int) -> None:
        self.store.remove(key(number))
        self.model.pop(key(number), None)
        assert self.store.get(key(number), self.now) is None

    @rule(seconds=st.integers(0, 4))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def sweep(self) -> None:
        before = len(self.store)
        removed = self.store.sweep(self.now)
        assert len(self.store) == before - removed
        self.model = {k: e for k, e in self.model.items() if e.expires > self.now}
        assert len(self.store) <= len(self.model)

    @rule(limit=st.integers(0, 8))
    def set_limit(self, limit: int) -> None:
        # what a cap removed stays away when the cap goes
        self.limit = limit
        self.store.set_max_entries(limit)
        self.model = {k: e for shard in self.store._shards for k, e in shard.entries.items()}

    @invariant()
    def bounded(self) -> None:
        assert not self.limit or len(self.store) <= self.limit
        for shard in self.store._shards:
            assert sorted(shard.keys) == sorted(shard.entries)
            assert len(shard.heap) >= len(shard.entries)


StoreAgainstModel.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
test_store_against_model = StoreAgainstModel.TestCase
