"""The thread behind `sync: periodic`: it forces written shards to disk at an interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from conduit.lookup.cache.lmdb_shard import Shard
from conduit.lookup.cache.store import StoreEvents
from conduit.observe.logging import get_log

_log = get_log("conduit_core")

# seconds that stopping waits for a sync under way
_STOP_LIMIT = 5.0


class Flusher:
    """Syncs the shards of one store every `interval` seconds until it is stopped."""

    __slots__ = (
        "_clock",
        "_events",
        "_interval",
        "_shards",
        "_stopped",
        "_thread",
        "_wake",
        "last",
    )

    def __init__(
        self,
        name: str,
        shards: Sequence[Shard],
        interval: float,
        events: StoreEvents,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare for the cache `name`; `start` starts the thread."""
        self._shards = shards
        self._interval = interval
        self._events = events
        self._clock = clock
        self._wake = threading.Condition()
        self._stopped = False
        #: `clock` seconds of the last tick without a failure, None before it
        self.last: float | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"conduit-lmdb-sync-{name}", daemon=True
        )

    def start(self) -> None:
        """Start the thread. Raises RuntimeError when the system has none to give."""
        self._thread.start()

    def set_interval(self, interval: float) -> None:
        """Change the interval (seconds); it counts from now."""
        with self._wake:
            if interval != self._interval:
                self._interval = interval
                self._wake.notify()

    def tick(self) -> bool:
        """Sync the shards written since their last sync; True when none failed."""
        started = self._clock()
        good = True
        for shard in self._shards:
            try:
                shard.force_sync()
            except Exception as error:
                good = False
                self._events.sync_failed()
                _log.error("syncing a cache file failed", path=shard.path, error=error)
        finished = self._clock()
        if good:
            self.last = finished
        self._events.synced(finished - started)
        return good

    def age(self) -> float | None:
        """Seconds since the last tick without a failure."""
        return None if self.last is None else max(0.0, self._clock() - self.last)

    def stop(self) -> None:
        """End the thread, then sync once more; a sync that hangs is left behind with a warning."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        self._thread.join(_STOP_LIMIT)
        if self._thread.is_alive():
            _log.warn("cache sync does not end, final sync skipped", thread=self._thread.name)
            return
        self.tick()

    def _run(self) -> None:
        while True:
            with self._wake:
                # a notice restarts the wait: the interval changed, or the end came
                while not self._stopped and self._wake.wait(self._interval):
                    pass
                if self._stopped:
                    return
            self.tick()
