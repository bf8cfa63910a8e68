"""The effect of a follower: wait until another transaction has asked the upstream.

No thread waits. The driver parks the transaction and leaves a callback with the flight; whoever
ends the flight hands the transaction back to the workers (chapter 40 section 9).
"""

from __future__ import annotations

from conduit.lookup.cache.single_flight import Flight


class AwaitFill:
    """Park until `flight` has ended; its `end` then tells how."""

    __slots__ = ("flight",)

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
