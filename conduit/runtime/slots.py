"""The transaction slot pool: the bound on transactions in flight (chapter 20 section 4.3)."""

from __future__ import annotations

import threading


class SlotPool:
    """Counts slots; a slot is held from admission to the end of Send or drop.

    A Python transaction needs no storage of its own to be reserved, so growth in chunks is
    invisible here: only the ceiling matters.
    """

    def __init__(self, capacity: int) -> None:
        """`capacity` is `orchestrator.txn_table_capacity`; 0 counts as 1."""
        self.capacity = max(1, capacity)
        self._lock = threading.Lock()
        self._in_use = 0
        self._exhausted = 0

    def acquire(self) -> bool:
        """Take a slot; False, counted as exhaustion, when none is free."""
        with self._lock:
            if self._in_use >= self.capacity:
                self._exhausted += 1
                return False
            self._in_use += 1
            return True

    def release(self) -> None:
        """Give a slot back."""
        with self._lock:
            self._in_use -= 1

    @property
    def in_use(self) -> int:
        """Slots taken now, parked transactions included."""
        return self._in_use

    @property
    def exhausted(self) -> int:
        """Acquisitions refused since the start of the process."""
        return self._exhausted
