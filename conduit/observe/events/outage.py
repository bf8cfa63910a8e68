"""The time without any connection of one sink: back-off, log lines, giving up (chapter 50, 5.7).

It decides and logs, and neither sleeps nor connects; the clock and the random factor are given.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from conduit.config import ConnectRetry
from conduit.observe.logging import Log, get_log

#: Shortest time between two "still failing" lines, seconds.
REMINDER: Final = 60.0
_MIN_DELAY: Final = 0.001
_JITTER: Final = 0.25


class Backoff:
    """Growing delays between attempts; `reset` begins anew."""

    __slots__ = ("_next", "_retry", "_uniform")

    def __init__(
        self, retry: ConnectRetry, uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._retry = retry.resolved()
        self._uniform = uniform
        self._next = 0.0
        self.reset()

    def reset(self) -> None:
        """The next delay is the first one again."""
        self._next = float(min(self._retry.initial_ms, self._retry.max_ms))

    def next_delay(self) -> float:
        """Return how long to wait after one more failure, in seconds."""
        delay = self._next / 1000
        self._next = min(self._next * self._retry.multiplier, float(self._retry.max_ms))
        if self._retry.jitter:
            delay *= self._uniform(1 - _JITTER, 1 + _JITTER)
        return max(delay, _MIN_DELAY)


class Outage:
    """Follows the failures of one sink from the last connection lost to the next one made."""

    __slots__ = (
        "_backoff",
        "_began",
        "_clock",
        "_disconnected",
        "_limit",
        "_log",
        "_reminded",
        "_sink",
        "_unreachable",
    )

    def __init__(
        self,
        sink: str,
        retry: ConnectRetry,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
        log: Log | None = None,
    ) -> None:
        self._sink = sink
        self._limit = retry.max_elapsed_ms / 1000
        self._backoff = Backoff(retry, uniform)
        self._clock = clock
        self._log = log if log is not None else get_log("conduit_events")
        self._began: float | None = None
        self._reminded = 0.0
        self._disconnected = False
        self._unreachable = False

    def disconnected(self) -> None:
        """The last connection is gone."""
        self._began = self._clock()
        self._disconnected = True
        self._log.warn("dnstap destinations disconnected, reconnecting", sink=self._sink)

    def failed(self, attempts: int) -> float | None:
        """No destination could be reached in round number `attempts` of the sink's life.

        Returns how many seconds to sleep, or None when the sink is to give up until a restart.
        """
        now = self._clock()
        if self._began is None:
            self._began = now
        elif self._limit and now - self._began >= self._limit:
            self._log.error(
                "dnstap destinations given up until restart",
                sink=self._sink,
                connect_attempts=attempts,
                max_elapsed_ms=round(self._limit * 1000),
            )
            return None
        delay = self._backoff.next_delay()
        fields = {
            "sink": self._sink,
            "connect_attempts": attempts,
            "delay_ms": round(delay * 1000),
        }
        if not self._unreachable:
            self._unreachable = True
            self._reminded = now
            self._log.warn("dnstap destinations unreachable, reconnecting", sink=self._sink)
        elif now - self._reminded >= REMINDER:
            self._reminded = now
            self._log.warn("dnstap connect retry still failing", **fields)
        self._log.debug("dnstap connect retry sleep", **fields)
        return delay

    def ended(self, connections: int) -> None:
        """So many connections are up; a line only if the outage had one."""
        if self._unreachable or self._disconnected:
            self._log.info("dnstap connected", sink=self._sink, destinations=connections)
        self._began = None
        self._unreachable = self._disconnected = False
        self._backoff.reset()
