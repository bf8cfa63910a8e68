"""The slot pool: ceiling, exhaustion count, release (chapter 20 section 4.3)."""

from __future__ import annotations

from conduit.runtime.slots import SlotPool


def test_the_ceiling_refuses_and_counts() -> None:
    slots = SlotPool(2)
    assert [slots.acquire() for _ in range(5)] == [True, True, False, False, False]
    assert slots.in_use == 2
    assert slots.exhausted == 3
    slots.release()
    assert slots.acquire()


def test_capacity_zero_counts_as_one() -> None:
    slots = SlotPool(0)
    assert slots.capacity == 1
    assert slots.acquire()
    assert not slots.acquire()
