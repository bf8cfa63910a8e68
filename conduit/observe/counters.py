"""Thread-owned counters: written without a lock by one thread, added up when somebody scrapes.

A `Recorder` belongs to one thread at a time. Each counter family is a dictionary from a tuple of
label values at full detail to an integer, so that an increment is one dictionary operation; the
export side adds the recorders up and projects them onto the labels of the metric plan.
"""

from __future__ import annotations

import threading
from collections import defaultdict

from conduit.observe import families
from conduit.observe.families import Family

Key = tuple[object, ...]
Cells = defaultdict[Key, int]


class Recorder:
    """The counters of one thread; `recorder.queries[(label, ...)] += 1` records."""

    __slots__ = (
        "acl_decisions",
        "forward_attempts",
        "forward_errors",
        "parse_rejected",
        "probe_results",
        "queries",
        "queries_by_pool",
        "queries_dropped",
        "responses",
        "responses_truncated",
        "retries",
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


_ATTRIBUTES: dict[str, str] = {
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
        """Return the sum over all recorders of `family`, by label values at full detail."""
        attribute = _ATTRIBUTES[family.name]
        with self._lock:
            recorders = list(self._recorders)
        totals: Cells = defaultdict(int)
        for recorder in recorders:
            cells: Cells = getattr(recorder, attribute)
            # copy() is one atomic call: the owner may add a key while we iterate
            for key, value in cells.copy().items():
                totals[key] += value
        return totals
