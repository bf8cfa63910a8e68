"""Thread-owned counters: written without a lock by one thread, added up when somebody scrapes.

A `Recorder` belongs to one thread at a time. Each family is a dictionary from a tuple of label
values at full detail to an integer, or to a list of bucket counts for a histogram, so that an
observation is one dictionary operation; the export side adds the recorders up and projects them
onto the labels of the metric plan.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from conduit.observe import families
from conduit.observe.families import Family

Key = tuple[object, ...]
Cells = defaultdict[Key, int]
#: Counts per bucket, the last of them above every bound, then the sum of all values.
Buckets = list[float]


#: Values of one key that are kept as they are before they are sorted into buckets.
BATCH: Final = 16


class Histogram:
    """One histogram family of one thread.

    The owner appends to the list of a key in `pending`; `fold` sorts a full one into buckets, all
    at once, which costs a fraction of doing so value by value.
    """

    __slots__ = ("_buckets", "_lock", "bounds", "pending")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._buckets: dict[Key, Buckets] = {}
        self.pending: defaultdict[Key, list[float]] = defaultdict(list)
        # between the owner who folds and somebody who reads
        self._lock = threading.Lock()

    def observe(self, key: Key, value: float) -> None:
        """Count one value in seconds."""
        values = self.pending[key]
        values.append(value)
        if len(values) >= BATCH:
            self.fold(key)

    def fold(self, key: Key) -> None:
        """Sort what is pending of `key` into its buckets; for the owner alone."""
        with self._lock:
            values = self.pending[key]
            buckets = self._buckets.get(key)
            if buckets is None:
                buckets = self._buckets[key] = [0] * (len(self.bounds) + 2)
            self._sort_into(buckets, values)
            values.clear()

    def totals(self) -> dict[Key, Buckets]:
        """Return the buckets of every key, pending values included; for any thread."""
        with self._lock:
            found = {key: list(buckets) for key, buckets in self._buckets.items()}
            # copy() of either is one atomic call: the owner goes on appending
            for key, values in self.pending.copy().items():
                buckets = found.setdefault(key, [0] * (len(self.bounds) + 2))
                self._sort_into(buckets, values.copy())
        return found

    def _sort_into(self, buckets: Buckets, values: list[float]) -> None:
        if not values:
            return
        bounds = self.bounds
        if max(values) <= bounds[0]:
            # most durations fall into the first bucket
            buckets[0] += len(values)
        else:
            ordered = sorted(values)
            below = 0
            for place, bound in enumerate(bounds):
                upto = bisect_right(ordered, bound, below)
                buckets[place] += upto - below
                below = upto
            buckets[-2] += len(ordered) - below
        buckets[-1] += sum(values)


class Recorder:
    """The counters of one thread; `recorder.queries[(label, ...)] += 1` records."""

    __slots__ = (
        "acl_decisions",
        "cache_coalesced",
        "cache_fills",
        "cache_lookup_duration",
        "cache_lookups",
        "forward_attempts",
        "forward_duration",
        "forward_errors",
        "lookup_duration",
        "lookup_outcomes",
        "parse_rejected",
        "phase_duration",
        "probe_results",
        "queries",
        "queries_by_pool",
        "queries_dropped",
        "response_duration",
        "responses",
        "responses_truncated",
        "retries",
        "script_errors",
        "user",
    )

    def __init__(self) -> None:
        self.queries: Cells = defaultdict(int)
        self.responses: Cells = defaultdict(int)
        self.responses_truncated: Cells = defaultdict(int)
        self.queries_dropped: Cells = defaultdict(int)
        self.acl_decisions: Cells = defaultdict(int)
        self.queries_by_pool: Cells = defaultdict(int)
        self.parse_rejected: Cells = defaultdict(int)
        self.forward_errors: Cells = defaultdict(int)
        self.forward_attempts: Cells = defaultdict(int)
        self.retries: Cells = defaultdict(int)
        self.probe_results: Cells = defaultdict(int)
        self.script_errors: Cells = defaultdict(int)
        self.lookup_outcomes: Cells = defaultdict(int)
        self.cache_lookups: Cells = defaultdict(int)
        self.cache_fills: Cells = defaultdict(int)
        self.cache_coalesced: Cells = defaultdict(int)
        #: Metrics that scripts define, by name and label pairs.
        self.user: Cells = defaultdict(int)
        self.phase_duration = Histogram(families.PHASE_BUCKETS)
        self.forward_duration = Histogram(families.FORWARD_BUCKETS)
        self.lookup_duration = Histogram(families.PHASE_BUCKETS)
        self.cache_lookup_duration = Histogram(families.PHASE_BUCKETS)
        self.response_duration = Histogram(families.PHASE_BUCKETS)


_ATTRIBUTES: Mapping[str, str] = {
    families.QUERIES.name: "queries",
    families.RESPONSES.name: "responses",
    families.RESPONSES_TRUNCATED.name: "responses_truncated",
    families.QUERIES_DROPPED.name: "queries_dropped",
    families.ACL_DECISIONS.name: "acl_decisions",
    families.QUERIES_BY_POOL.name: "queries_by_pool",
    families.PARSE_REJECTED.name: "parse_rejected",
    families.FORWARD_ERRORS.name: "forward_errors",
    families.FORWARD_ATTEMPTS.name: "forward_attempts",
    families.RETRIES.name: "retries",
    families.PROBE_RESULTS.name: "probe_results",
    families.SCRIPT_ERRORS.name: "script_errors",
    families.LOOKUP_OUTCOMES.name: "lookup_outcomes",
    families.CACHE_LOOKUPS.name: "cache_lookups",
    families.CACHE_FILLS.name: "cache_fills",
    families.CACHE_COALESCED.name: "cache_coalesced",
    families.PHASE_DURATION.name: "phase_duration",
    families.FORWARD_DURATION.name: "forward_duration",
    families.LOOKUP_DURATION.name: "lookup_duration",
    families.CACHE_LOOKUP_DURATION.name: "cache_lookup_duration",
    families.RESPONSE_DURATION.name: "response_duration",
}


class CounterRegistry:
    """Hands out recorders and adds them up.

    A thread that ends returns its recorder, and the next thread goes on with it: the number of
    recorders is the largest number of threads that ever recorded at once, and no count is lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recorders: list[Recorder] = []
        self._free: list[Recorder] = []

    def acquire(self) -> Recorder:
        """Return a recorder for the calling thread alone."""
        with self._lock:
            if self._free:
                return self._free.pop()
            recorder = Recorder()
            self._recorders.append(recorder)
            return recorder

    def release(self, recorder: Recorder) -> None:
        """Take back the recorder of a thread that ends; its counts stay."""
        with self._lock:
            self._free.append(recorder)

    def totals(self, family: Family) -> dict[Key, int]:
        """Return the sum over all recorders of a counter family, by labels at full detail."""
        return self._sum(_ATTRIBUTES[family.name])

    def user_totals(self) -> dict[Key, int]:
        """Return the sums of the metrics that scripts define, by name and label pairs."""
        return self._sum("user")

    def histogram(self, family: Family) -> dict[Key, Buckets]:
        """Return the sum over all recorders of a histogram family."""
        attribute = _ATTRIBUTES[family.name]
        totals: dict[Key, Buckets] = {}
        for recorder in self._all():
            found: Histogram = getattr(recorder, attribute)
            for key, buckets in found.totals().items():
                known = totals.get(key)
                totals[key] = (
                    list(buckets)
                    if known is None
                    else [a + b for a, b in zip(known, buckets, strict=True)]
                )
        return totals

    def _all(self) -> list[Recorder]:
        with self._lock:
            return list(self._recorders)

    def _sum(self, attribute: str) -> dict[Key, int]:
        totals: Cells = defaultdict(int)
        for recorder in self._all():
            cells: Cells = getattr(recorder, attribute)
            for key, value in cells.copy().items():
                totals[key] += value
        return dict(totals)
