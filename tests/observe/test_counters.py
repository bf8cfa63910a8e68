"""Histograms of one thread: what is pending counts, and folding changes no sum."""

from __future__ import annotations

import threading
from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from conduit.observe.counters import BATCH, Histogram

BOUNDS = (0.001, 0.01, 0.1)


def expected(values: list[float]) -> list[float]:
    buckets = [0.0] * (len(BOUNDS) + 2)
    for value in values:
        buckets[bisect_left(BOUNDS, value)] += 1
        buckets[-1] += value
    return buckets


@given(st.lists(st.floats(0, 1), max_size=3 * BATCH))
def test_buckets_are_those_of_one_by_one_counting(values: list[float]) -> None:
    histogram = Histogram(BOUNDS)
    for value in values:
        histogram.observe(("k",), value)
    found = histogram.totals().get(("k",), [0] * (len(BOUNDS) + 2))
    assert found[:-1] == expected(values)[:-1]
    assert abs(found[-1] - expected(values)[-1]) < 1e-6
    # reading changes nothing
    assert histogram.totals().get(("k",), found) == found


def test_values_on_a_bound_belong_to_its_bucket() -> None:
    histogram = Histogram(BOUNDS)
    for value in (*BOUNDS, 0.2):
        histogram.observe((), value)
    assert histogram.totals()[()][:-1] == [1, 1, 1, 1]


def test_a_reader_never_sees_a_value_twice_or_loses_one() -> None:
    histogram = Histogram(BOUNDS)
    done = threading.Event()
    seen: list[float] = []

    def read() -> None:
        while not done.is_set():
            seen.append(sum(histogram.totals().get((), [0])[:-1]))

    reader = threading.Thread(target=read)
    reader.start()
    count = 60 * BATCH
    for number in range(count):
        histogram.observe((), (number % 7) / 50)
    done.set()
    reader.join()
    assert seen == sorted(seen)
    assert sum(histogram.totals()[()][:-1]) == count
