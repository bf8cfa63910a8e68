"""Egress source addresses: what a forward binds to (chapter 20 section 12.6)."""

from __future__ import annotations

from collections.abc import Sequence

from conduit.upstream.pool import Pool


class SourceSelector:
    """Chooses the local address of each attempt; one selector belongs to one egress owner.

    `global_v4` and `global_v6` are `forward.sources_v4` and `forward.sources_v6`. There is one
    round-robin counter per family, shared by all pools, advanced only by a choice from a list.
    """

    __slots__ = ("_global_v4", "_global_v6", "_next_v4", "_next_v6")

    def __init__(self, global_v4: Sequence[str] = (), global_v6: Sequence[str] = ()) -> None:
        self._global_v4 = tuple(global_v4)
        self._global_v6 = tuple(global_v6)
        self._next_v4 = 0
        self._next_v6 = 0

    def choose(self, pool: Pool, ipv6: bool, override: str | None) -> str | None:
        """Return the local address for one attempt, or None to leave it to the system.

        An override outside the allowed set (the global list and that of the pool) is ignored.
        """
        pool_list = pool.sources_v6 if ipv6 else pool.sources_v4
        global_list = self._global_v6 if ipv6 else self._global_v4
        if override is not None and (override in pool_list or override in global_list):
            return override
        addresses = pool_list or global_list
        if not addresses:
            return None
        if ipv6:
            index, self._next_v6 = self._next_v6, self._next_v6 + 1
        else:
            index, self._next_v4 = self._next_v4, self._next_v4 + 1
        return addresses[index % len(addresses)]
