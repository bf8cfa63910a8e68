"""One asks, the others follow, and nobody sleeps for ever."""

from __future__ import annotations

import gc
import threading
import time
from functools import partial

import pytest

from conduit.lookup.cache.entry import Entry, Kind
from conduit.lookup.cache.single_flight import Flight, FlightEnd, FlightTable, Leadership

KEY = b"key"


def entry() -> Entry:
    return Entry(bytes(30), 0.0, 60.0, Kind.POSITIVE, 20, 30, (), b"")


def lead(table: FlightTable, key: bytes = KEY) -> Leadership:
    joined = table.join(key)
    assert isinstance(joined, Leadership)
    return joined


def follow(table: FlightTable, key: bytes = KEY) -> Flight:
    joined = table.join(key)
    assert isinstance(joined, Flight)
    return joined


def test_the_first_leads_the_others_follow_keys_are_apart() -> None:
    table = FlightTable()
    leader = lead(table)
    assert follow(table) is leader.flight
    other = lead(table, b"other")
    assert len(table) == 2
    other.abandon()
    assert len(table) == 1
    leader.abandon()


def test_an_answer_reaches_every_follower_once() -> None:
    table = FlightTable()
    leader = lead(table)
    calls: list[int] = []
    flight = follow(table)
    for number in range(3):
        flight.when_done(partial(calls.append, number))
    answer = entry()
    leader.answered(answer)
    leader.abandon()
    leader.uncacheable()
    assert calls == [0, 1, 2]
    assert (flight.end, flight.entry) == (FlightEnd.ANSWERED, answer)
    # who comes late is called at once
    flight.when_done(lambda: calls.append(9))
    assert calls[-1] == 9
    assert flight.wait(0) is FlightEnd.ANSWERED


@pytest.mark.parametrize("end", [FlightEnd.UNCACHEABLE, FlightEnd.ABANDONED])
def test_without_an_answer_followers_get_none_and_the_next_query_leads(end: FlightEnd) -> None:
    table = FlightTable()
    leader = lead(table)
    flight = follow(table)
    if end is FlightEnd.UNCACHEABLE:
        leader.uncacheable()
    else:
        leader.abandon()
    assert (flight.end, flight.entry) == (end, None)
    again = lead(table)
    assert again.flight is not flight
    again.abandon()


def test_a_leader_that_vanishes_releases_its_followers() -> None:
    table = FlightTable()
    leader = lead(table)
    flight = follow(table)
    del leader
    gc.collect()
    assert flight.wait(0) is FlightEnd.ABANDONED
    lead(table).abandon()


def test_a_leader_inside_a_cycle_is_collected_and_releases_its_followers() -> None:
    table = FlightTable()
    cycle: list[object] = [lead(table)]
    cycle.append(cycle)
    flight = follow(table)
    del cycle
    gc.collect()
    assert flight.end is FlightEnd.ABANDONED


def test_an_old_leader_cannot_end_the_next_flight() -> None:
    table = FlightTable()
    first = lead(table)
    first.abandon()
    second = lead(table)
    first.answered(entry())
    assert second.flight.end is None
    assert follow(table) is second.flight
    second.abandon()


def test_a_callback_that_raises_does_not_keep_the_others_asleep() -> None:
    table = FlightTable()
    leader = lead(table)
    flight = follow(table)
    woken: list[bool] = []

    def fail() -> None:
        raise ValueError("broken follower")

    flight.when_done(fail)
    flight.when_done(lambda: woken.append(True))
    leader.uncacheable()
    assert woken == [True]


def test_a_callback_may_lead_the_next_flight_of_the_same_key() -> None:
    table = FlightTable()
    leader = lead(table)
    led: list[Leadership | Flight] = []
    follow(table).when_done(lambda: led.append(table.join(KEY)))
    leader.abandon()
    assert isinstance(led[0], Leadership)
    led[0].abandon()


def test_waiting_ends_with_the_limit() -> None:
    table = FlightTable()
    leader = lead(table)
    flight = follow(table)
    assert flight.wait(0.01) is None
    leader.abandon()


def test_a_leader_can_tell_that_a_flight_ended_since_its_miss() -> None:
    table = FlightTable()
    seen = table.ended
    first = lead(table)
    first.answered(entry())
    second = lead(table)
    assert table.ended != seen
    second.abandon()


def test_ch40_example_24_ten_threads_at_once_ask_the_upstream_once() -> None:
    table = FlightTable()
    store: dict[bytes, Entry] = {}
    asked: list[int] = []
    results: list[Entry | None] = []
    start = threading.Barrier(10)

    def work(number: int) -> None:
        start.wait(10)
        seen = table.ended
        found = store.get(KEY)
        if found is None:
            joined = table.join(KEY)
            if isinstance(joined, Flight):
                assert joined.wait(10) is FlightEnd.ANSWERED
                found = joined.entry
            elif table.ended != seen and KEY in store:
                found = store[KEY]
                joined.answered(found)
            else:
                asked.append(number)
                found = store[KEY] = entry()
                joined.answered(found)
        results.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(asked) == 1
    assert results == [store[KEY]] * 10


def test_no_wake_up_is_lost_under_load() -> None:
    table = FlightTable()
    keys = [b"a", b"b", b"c"]
    failures: list[str] = []
    woken = threading.Semaphore(0)
    waits = [0] * 8

    def work(number: int) -> None:
        for turn in range(1500):
            joined = table.join(keys[(turn + number) % 3])
            if isinstance(joined, Flight):
                waits[number] += 1
                joined.when_done(woken.release)
                if turn % 5 == 0 and joined.wait(10) is None:
                    failures.append("a follower still sleeps")
                    return
            elif turn % 3 == 0:
                joined.answered(entry())
            elif turn % 3 == 1:
                time.sleep(0)
                joined.uncacheable()
            else:
                time.sleep(0)
                del joined

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert len(table) == 0
    for _ in range(sum(waits)):
        assert woken.acquire(timeout=5)
    assert not woken.acquire(blocking=False)
