"""Lets one transaction ask the upstream for what many want at once (chapter 40 section 9).

The first that misses a key leads a flight, the others follow. However the leader ends (an answer,
one that is not stored, a failure, or its object simply going away), every follower wakes exactly
once. A follower may block a thread (`Flight.wait`) or leave a callback (`Flight.when_done`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

from conduit.lookup.cache.entry import Entry
from conduit.observe.logging import get_log

_log = get_log("conduit_core")

#: Seconds that a follower waits at most; then it goes its own way.
FOLLOWER_LIMIT = 30.0


class FlightEnd(Enum):
    """How a flight ended."""

    #: the leader has an answer for everyone
    ANSWERED = "answered"
    #: the leader has an answer that must not be shared; each follower asks on its own
    UNCACHEABLE = "uncacheable"
    #: the leader has none: it failed, was dropped, or went away
    ABANDONED = "abandoned"


class Flight:
    """One question under way. `end` is None until the leader is done."""

    __slots__ = ("_callbacks", "_table", "end", "entry", "key")

    def __init__(self, table: FlightTable, key: bytes) -> None:
        self._table = table
        self.key = key
        self.end: FlightEnd | None = None
        #: the leader's answer, whether or not the store took it; only with ANSWERED
        self.entry: Entry | None = None
        self._callbacks: list[Callable[[], None]] | None = None

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` once, in the leader's thread, or at once when the flight has ended.

        It must be short and must not raise: other followers wait behind it.
        """
        with self._table.lock:
            callbacks = self._callbacks
            if callbacks is None:
                callbacks = self._callbacks = []
            # looked at last: making the list may run the collector, which may end this flight
            if self.end is None:
                callbacks.append(callback)
                return
        callback()

    def wait(self, timeout: float) -> FlightEnd | None:
        """Block until the flight ends or `timeout` seconds passed; None when it is still on."""
        if self.end is None:
            done = threading.Event()
            self.when_done(done.set)
            done.wait(timeout)
        return self.end

    def _finish(self, end: FlightEnd, entry: Entry | None) -> None:
        table = self._table
        with table.lock:
            if self.end is not None:
                return
            self.entry = entry
            self.end = end
            # before the removal, so that whoever opens the next flight notices (see `FlightTable`)
            table.ended += 1
            table.flights.pop(self.key, None)
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            try:
                callback()
            except Exception:
                _log.exception("waking a follower failed")


class Leadership:
    """The leader's side of a flight. Letting go of it without a word abandons the flight."""

    __slots__ = ("flight",)

    def __init__(self, flight: Flight) -> None:
        self.flight = flight

    def answered(self, entry: Entry) -> None:
        """Give every follower this answer, whether or not a store took it."""
        self.flight._finish(FlightEnd.ANSWERED, entry)

    def uncacheable(self) -> None:
        """There is an answer, but it is the leader's alone."""
        self.flight._finish(FlightEnd.UNCACHEABLE, None)

    def abandon(self) -> None:
        """There is no answer. Has no effect on a flight that has ended."""
        if self.flight.end is None:
            self.flight._finish(FlightEnd.ABANDONED, None)

    def __del__(self) -> None:
        self.abandon()


class FlightTable:
    """The flights of one cache instance; it outlives a change of the instance's store.

    Between a miss and `join`, another flight of the same key may begin and end. A caller that
    read `ended` before the miss and finds it changed after it became leader reads the store again.
    """

    __slots__ = ("ended", "flights", "lock")

    def __init__(self) -> None:
        # re-entrant: the collector may run Leadership.__del__ while this thread holds it
        self.lock = threading.RLock()
        self.flights: dict[bytes, Flight] = {}
        #: number of flights that have ended
        self.ended = 0

    def join(self, key: bytes) -> Leadership | Flight:
        """Return a `Leadership` when nobody asks for `key` yet, else the flight to follow."""
        with self.lock:
            flight = self.flights.get(key)
            if flight is not None:
                return flight
            flight = self.flights[key] = Flight(self, key)
        return Leadership(flight)

    def __len__(self) -> int:
        return len(self.flights)
