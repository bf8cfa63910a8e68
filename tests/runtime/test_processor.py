"""Choosing the processor that the process runs on."""

from __future__ import annotations

import os

from conduit.runtime.processor import ProcessorKeeper, choose, loads, processor_times

BOTH = frozenset({0, 1})


def test_reading_proc_stat() -> None:
    text = (
        "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 5 100 4 0 2 0 0 0\ncpu1 1 0 1 50 0 0 0 0 0 0\nintr 5\n"
    )
    assert processor_times(text) == {0: (18, 122), 1: (2, 52)}


def test_loads_between_two_readings() -> None:
    assert loads({0: (0, 0), 1: (5, 10)}, {0: (50, 100), 1: (5, 10)}) == {0: 0.5, 1: 0.0}


def test_our_own_load_does_not_drive_us_away() -> None:
    assert choose(0, {0: 0.95, 1: 0.1}, 0.9, BOTH) == 0


def test_a_crowded_processor_is_left_for_an_idle_one() -> None:
    assert choose(0, {0: 1.0, 1: 0.1}, 0.4, BOTH) == 1


def test_equally_crowded_processors_cause_no_moves() -> None:
    assert choose(0, {0: 1.0, 1: 0.5}, 0.4, BOTH) == 0


def test_a_processor_that_is_not_allowed_is_left() -> None:
    assert choose(3, {0: 0.5, 1: 0.4, 3: 0.0}, 0.0, BOTH) == 1


def test_the_keeper_pins_and_moves_every_thread() -> None:
    allowed = os.sched_getaffinity(0)
    keeper = ProcessorKeeper()
    try:
        for processor in sorted(allowed):
            keeper._move(processor)
            for thread in os.listdir("/proc/self/task"):
                assert os.sched_getaffinity(int(thread)) == {processor}
    finally:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), allowed)
