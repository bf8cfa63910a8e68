"""`pools[].max_inflight`: the cap on forwards of one pool, enforced under `split_io` only."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class InflightLimits:
    """Reservations per pool; pools without a limit are never counted (chapter 20 section 4.5)."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        """`limits` come from the start-up snapshot."""
        self._limits = dict(limits)
        self._counts = dict.fromkeys(limits, 0)
        self._lock = threading.Lock()

    def reserve(self, pool: str) -> bool:
        """Take a reservation for one forward; False at the cap."""
        limit = self._limits.get(pool)
        if limit is None:
            return True
        with self._lock:
            if self._counts[pool] >= limit:
                return False
            self._counts[pool] += 1
            return True

    def release(self, pool: str) -> None:
        """Give a reservation back, exactly once for each that was taken."""
        if pool in self._limits:
            with self._lock:
                self._counts[pool] -= 1
