"""Bulkheads: how many workers may block on upstreams, per pool and in all.

One pool's silent backend never holds more than three quarters of the workers, and some workers
never block, so that queries that need no upstream are served however many upstreams are silent.
An exchange that may not start yet is parked here; a worker that ends one takes it over.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Bulkhead(Generic[T]):
    """Admission of exchanges to blocking workers; `T` is what a parked exchange consists of."""

    def __init__(self, workers_max: int) -> None:
        """`workers_max` is the largest size of the worker pool."""
        reserve = max(1, workers_max // 16) if workers_max > 1 else 0
        self.total_limit = workers_max - reserve
        self.pool_limit = max(1, min(self.total_limit, workers_max * 3 // 4))
        self._lock = threading.Lock()
        self._total = 0
        self._by_pool: dict[str, int] = {}
        self._parked: dict[str, deque[T]] = {}

    def enter(self, pool: str, exchange: T) -> bool:
        """Admit one exchange to `pool`, or park it and return False."""
        with self._lock:
            count = self._by_pool.get(pool, 0)
            if count < self.pool_limit and self._total < self.total_limit:
                self._by_pool[pool] = count + 1
                self._total += 1
                return True
            self._parked.setdefault(pool, deque()).append(exchange)
            return False

    def leave(self, pool: str) -> None:
        """End one exchange to `pool`."""
        with self._lock:
            self._total -= 1
            self._by_pool[pool] -= 1

    def next_parked(self) -> T | None:
        """Admit a parked exchange that may start now and return it, or None.

        A worker asks whenever it has finished or parked a transaction, so nothing parked is
        forgotten: what keeps it parked is an exchange of a worker that will ask again.
        """
        if not self._parked:
            return None
        with self._lock:
            if self._total >= self.total_limit:
                return None
            for pool, waiting in self._parked.items():
                count = self._by_pool.get(pool, 0)
                if count < self.pool_limit:
                    exchange = waiting.popleft()
                    self._by_pool[pool] = count + 1
                    self._total += 1
                    # to the back of the line: each pool gets its turn
                    del self._parked[pool]
                    if waiting:
                        self._parked[pool] = waiting
                    return exchange
            return None
