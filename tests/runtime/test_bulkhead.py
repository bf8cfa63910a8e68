"""Bulkheads: no pool holds more than three quarters of the workers (design section 6)."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from conduit.runtime.bulkhead import Bulkhead


def test_one_pool_is_held_to_three_quarters() -> None:
    bulkhead: Bulkhead[int] = Bulkhead(16)
    admitted = [bulkhead.enter("slow", n) for n in range(16)]
    assert admitted.count(True) == 12
    assert bulkhead.enter("fast", 99)


def test_all_pools_together_leave_a_reserve() -> None:
    bulkhead: Bulkhead[int] = Bulkhead(16)
    count = sum(bulkhead.enter(f"pool{n % 4}", n) for n in range(40))
    assert count == 15


def test_what_is_parked_gets_its_turn_in_order() -> None:
    bulkhead: Bulkhead[str] = Bulkhead(1)
    assert bulkhead.enter("p", "a")
    assert not bulkhead.enter("p", "b")
    assert not bulkhead.enter("p", "c")
    assert bulkhead.next_parked() is None
    bulkhead.leave("p")
    assert bulkhead.next_parked() == "b"
    assert bulkhead.next_parked() is None
    bulkhead.leave("p")
    assert bulkhead.next_parked() == "c"
    bulkhead.leave("p")
    assert bulkhead.next_parked() is None


def test_a_full_pool_does_not_stop_another_ones_parked() -> None:
    bulkhead: Bulkhead[str] = Bulkhead(4)
    assert [bulkhead.enter("slow", f"s{n}") for n in range(3)] == [True] * 3
    assert not bulkhead.enter("slow", "s3")
    assert not bulkhead.enter("fast", "f0")  # the reserve
    bulkhead.leave("slow")
    assert bulkhead.next_parked() == "s3"
    bulkhead.leave("slow")
    assert bulkhead.next_parked() == "f0"


@given(st.integers(1, 20), st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=120))
def test_limits_hold_and_nothing_is_forgotten(workers: int, steps: list[tuple[str, bool]]) -> None:
    bulkhead: Bulkhead[str] = Bulkhead(workers)
    running: deque[str] = deque()
    waiting = 0
    for pool, enters in steps:
        if enters:
            if bulkhead.enter(pool, pool):
                running.append(pool)
            else:
                waiting += 1
        elif running:
            bulkhead.leave(running.popleft())
            parked = bulkhead.next_parked()
            if parked is not None:
                running.append(parked)
                waiting -= 1
        assert len(running) <= bulkhead.total_limit
        for name in "ab":
            assert running.count(name) <= bulkhead.pool_limit
    while running:
        bulkhead.leave(running.popleft())
        while (parked := bulkhead.next_parked()) is not None:
            running.append(parked)
            waiting -= 1
    assert waiting == 0
