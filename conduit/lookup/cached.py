"""The cache provider: hit, miss or bypass of one instance, and what a leader owes it.

A generator like the forward provider: a follower yields `AwaitFill` (chapter 40 sections 1.3, 9).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from conduit.lookup.await_fill import AwaitFill
from conduit.lookup.cache.keys import cache_key
from conduit.lookup.cache.single_flight import Flight, FlightEnd, Leadership
from conduit.lookup.caches import CacheRegistry, Fill, Hit, LiveCache
from conduit.transaction import CACHE, Transaction

HIT: Final = "hit"
MISS: Final = "miss"
BYPASS: Final = "bypass"

#: Outcomes of the provider, as the label of conduit_lookup_provider_outcomes_total.
_OUTCOMES: Final = {HIT: "answered", MISS: "miss", BYPASS: "bypass"}


def look_up(
    txn: Transaction, caches: CacheRegistry | None, name: str, clock: Callable[[], float]
) -> Generator[AwaitFill, None, bool]:
    """Run one cache provider; True when `txn` now holds an answer."""
    started = clock()
    cache = caches.get(name) if caches is not None else None
    if cache is None or not txn.cache_eligible:
        _count(txn, name, BYPASS, clock() - started)
        return False
    key = cache_key(txn.query)
    if key is None:
        _count(txn, name, BYPASS, clock() - started)
        return False
    flights = cache.flights
    ended = flights.ended
    hit = cache.find(key, txn.query, txn.listener.is_tcp, clock())
    if hit is None:
        joined = flights.join(key)
        if not isinstance(joined, Leadership):
            return (yield from _follow(txn, cache, joined, clock, started))
        if flights.ended != ended:
            # a flight ended between the look and the join: its answer may be there now
            hit = cache.find(key, txn.query, txn.listener.is_tcp, clock())
            if hit is not None:
                joined.answered(hit.entry)
        if hit is None:
            txn.fills = (*txn.fills, Fill(cache, key, joined))
            _count(txn, name, MISS, clock() - started)
            return False
    _answer(txn, cache, hit)
    txn.cache_hit = (cache, key, hit.entry)
    _count(txn, name, HIT, clock() - started)
    return True


def _follow(
    txn: Transaction,
    cache: LiveCache,
    joined: Flight,
    clock: Callable[[], float],
    started: float,
) -> Generator[AwaitFill, None, bool]:
    """Wait for the leader; True when its answer serves `txn` as well."""
    name = cache.name
    yield AwaitFill(joined)
    entry = joined.entry
    if joined.end is FlightEnd.ANSWERED and entry is not None:
        now = cache.now(clock())
        hit = cache.prepare(entry, txn.query, txn.listener.is_tcp, max(now, entry.stored))
        if hit is not None:
            _answer(txn, cache, hit)
            _count(txn, name, HIT, clock() - started)
            if txn.recorder is not None:
                txn.recorder.cache_coalesced[(name, txn.lookup_profile)] += 1
            return True
    # the leader has nothing to share: each follower asks on its own, and none of them fills
    _count(txn, name, BYPASS, clock() - started)
    return False


def settle(txn: Transaction, answer: bytes | None, clock: Callable[[], float]) -> None:
    """Give what the forward provider got to every cache that waits for it."""
    fills = txn.fills
    if not fills:
        return
    txn.fills = ()
    for owed in fills:
        if answer is None:
            owed.leadership.abandon()
            continue
        stored = owed.cache.fill(owed, txn.query, answer, txn.listener.is_tcp, clock())
        if stored and txn.recorder is not None:
            txn.recorder.cache_fills[(owed.cache.name, txn.lookup_profile)] += 1


def _answer(txn: Transaction, cache: LiveCache, hit: Hit) -> None:
    txn.answer = hit.wire
    txn.rcode = hit.wire[3] & 0xF
    txn.answer_source = CACHE
    txn.cache_instance = cache.name
    txn.last_rtt_ms = 0
    txn.skip_response_rules = not cache.policy.runs_response_rules
    settle(txn, None, lambda: 0.0)


def _count(txn: Transaction, name: str, result: str, elapsed: float) -> None:
    recorder = txn.recorder
    if recorder is None:
        return
    profile = txn.lookup_profile
    recorder.cache_lookups[(name, profile, result)] += 1
    recorder.lookup_outcomes[(profile, CACHE, _OUTCOMES[result])] += 1
    if txn.snapshot.timing:
        recorder.cache_lookup_duration.observe((name, profile), elapsed)
        recorder.lookup_duration.observe((profile, CACHE), elapsed)
