"""The table of outstanding forwards: upstream query ids and their limits (chapter 20 section 4.4).

One table serves the whole process, keyed by backend address; every worker takes its id here
before it sends and gives it back when the forward ends.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator

_ID_BATCH = 2048
_unpack_ids = struct.Struct(f"={_ID_BATCH}H").unpack


class OutstandingTable:
    """Upstream ids in use per backend address, unpredictable and unique while in use."""

    def __init__(self, capacity: int) -> None:
        """`capacity` bounds the entries of all backends together."""
        self.capacity = max(1, capacity)
        self._lock = threading.Lock()
        self._ids: dict[str, set[int]] = {}
        self._total = 0
        self._random: Iterator[int] = iter(())

    def acquire(self, backend_key: str, client_id: int, limit: int) -> int:
        """Take an id for one forward to `backend_key`; -1 when a limit is reached (`table_full`).

        The id differs from `client_id` and from every id outstanding to that backend. `limit` is
        `forward.outstanding_per_backend`.
        """
        with self._lock:
            ids = self._ids.get(backend_key)
            if ids is None:
                ids = self._ids[backend_key] = set()
            # one id is the client's own, which the forward may not use
            if len(ids) >= limit or len(ids) >= 65535 or self._total >= self.capacity:
                return -1
            for _ in range(64):
                candidate = next(self._random, -1)
                if candidate < 0:
                    self._random = iter(_unpack_ids(os.urandom(2 * _ID_BATCH)))
                    continue
                if candidate not in ids and candidate != client_id:
                    break
            else:
                # a nearly full table: walk from a random place to the next free id
                candidate = _next_free(ids, client_id)
            ids.add(candidate)
            self._total += 1
            return candidate

    def release(self, backend_key: str, query_id: int) -> None:
        """Give an id back; releasing one that is not held does nothing."""
        with self._lock:
            ids = self._ids.get(backend_key)
            if ids is not None and query_id in ids:
                ids.discard(query_id)
                self._total -= 1
                if not ids:
                    del self._ids[backend_key]

    def counts(self) -> dict[str, int]:
        """Return the number of outstanding forwards per backend address, zeros left out."""
        with self._lock:
            return {key: len(ids) for key, ids in self._ids.items() if ids}


def _next_free(ids: set[int], client_id: int) -> int:
    start = int.from_bytes(os.urandom(2), "big")
    for step in range(65536):
        candidate = (start + step) & 0xFFFF
        if candidate not in ids and candidate != client_id:
            return candidate
    raise AssertionError("caller checks that an id is free")
