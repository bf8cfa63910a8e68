"""The outstanding table: unique unpredictable ids and its limits (chapter 20 section 4.4)."""

from __future__ import annotations

import threading
from collections import Counter

from conduit.upstream.outstanding import OutstandingTable


def test_ids_are_unique_while_outstanding_and_never_the_clients() -> None:
    table = OutstandingTable(100_000)
    ids = [table.acquire("b", 7, 70_000) for _ in range(65_535)]
    assert len(set(ids)) == 65_535
    assert 7 not in ids
    assert -1 not in ids
    # id 65,536 would be the client's own: a clear refusal, no wrap
    assert table.acquire("b", 7, 70_000) == -1


def test_limit_per_backend_address() -> None:
    table = OutstandingTable(10)
    assert table.acquire("b", 1, 1) >= 0
    assert table.acquire("b", 1, 1) == -1
    assert table.acquire("c", 1, 1) >= 0


def test_total_limit() -> None:
    table = OutstandingTable(2)
    assert table.acquire("a", 1, 9) >= 0
    assert table.acquire("b", 1, 9) >= 0
    assert table.acquire("c", 1, 9) == -1


def test_a_limit_of_zero_refuses_everything() -> None:
    assert OutstandingTable(10).acquire("a", 1, 0) == -1


def test_release_makes_room_and_is_idempotent() -> None:
    table = OutstandingTable(1)
    taken = table.acquire("a", 1, 1)
    table.release("a", taken)
    table.release("a", taken)
    assert table.counts() == {}
    assert table.acquire("a", 1, 1) >= 0
    assert table.counts() == {"a": 1}


def test_ids_spread_over_the_whole_range() -> None:
    table = OutstandingTable(10)
    buckets: Counter[int] = Counter()
    for _ in range(16_000):
        query_id = table.acquire("a", 0, 5)
        buckets[query_id >> 12] += 1
        table.release("a", query_id)
    # 1,000 expected a bucket; 6 sigma is about 190
    assert all(700 < buckets[bucket] < 1300 for bucket in range(16))


def test_many_threads_never_share_an_id() -> None:
    table = OutstandingTable(10_000)
    held: set[int] = set()
    lock = threading.Lock()
    clashes: list[int] = []

    def work() -> None:
        for _ in range(500):
            query_id = table.acquire("a", 0, 9_000)
            with lock:
                if query_id in held:
                    clashes.append(query_id)
                held.add(query_id)
            with lock:
                held.discard(query_id)
            table.release("a", query_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not clashes
    assert table.counts() == {}
