"""Keeps the process on one processor while the interpreter has a global lock.

Threads that take turns on the global interpreter lock lose most of their time when each turn moves
to another core: the hand-over then costs a wake-up between processors, and forwarding is about
three times slower. On one core the hand-over is a plain switch. The processor is not fixed: when
something else keeps it busy and another one is idle, all threads move there.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import Final

from conduit.observe.logging import get_log

_log = get_log("conduit_core")

_INTERVAL_SECONDS: Final = 2.0
# share of a processor by which the load of others must differ before a move pays
_MARGIN: Final = 0.25


def has_global_lock() -> bool:
    """True unless the interpreter is a free-threaded build with its lock off."""
    check = getattr(sys, "_is_gil_enabled", None)
    return check is None or bool(check())


def processor_times(stat: str) -> dict[int, tuple[int, int]]:
    """Return busy and total ticks a processor from the text of `/proc/stat`."""
    times: dict[int, tuple[int, int]] = {}
    for line in stat.splitlines():
        name, _, rest = line.partition(" ")
        if name.startswith("cpu") and name[3:].isdigit():
            ticks = [int(field) for field in rest.split()[:8]]
            # idle and iowait are the fourth and fifth
            times[int(name[3:])] = (sum(ticks) - ticks[3] - ticks[4], sum(ticks))
    return times


def loads(
    before: Mapping[int, tuple[int, int]], after: Mapping[int, tuple[int, int]]
) -> dict[int, float]:
    """Return the busy share, 0 to 1, of each processor between two readings."""
    result: dict[int, float] = {}
    for number, (busy, total) in after.items():
        old_busy, old_total = before.get(number, (busy, total))
        result[number] = (busy - old_busy) / (total - old_total) if total > old_total else 0.0
    return result


def choose(
    current: int | None, load: Mapping[int, float], own: float, allowed: frozenset[int]
) -> int:
    """Return the processor to be on, of those `allowed`.

    `load` is the busy share of each, our own time included; `own` is our share of `current`. A
    move needs a clear gain.
    """
    others = {n: load.get(n, 0.0) - (own if n == current else 0.0) for n in allowed}
    best = min(sorted(others), key=lambda n: others[n])
    if current not in allowed or others[current] > others[best] + _MARGIN:
        return best
    return current


class ProcessorKeeper:
    """Pins the process when that pays, and moves it when the processor gets crowded."""

    def __init__(self) -> None:
        self._allowed = frozenset(os.sched_getaffinity(0))
        self._current: int | None = None
        self._stop_requested = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="conduit-processor", daemon=True)

    def start(self) -> None:
        """Pin the calling thread, and so every thread it starts from now on, and keep watch.

        Does nothing on one processor, without a global lock, or without `/proc`.
        """
        if len(self._allowed) < 2 or not has_global_lock() or _read_stat() is None:
            return
        # spread several such processes on one host; the watch corrects a bad start
        self._move(sorted(self._allowed)[os.getpid() % len(self._allowed)])
        self._thread.start()

    def stop(self) -> None:
        """End the watch."""
        self._stop_requested.set()

    def _keep(self) -> None:
        before, own_before = _read_stat(), os.times()
        while not self._stop_requested.wait(_INTERVAL_SECONDS):
            after, own_after = _read_stat(), os.times()
            if before is None or after is None:
                return
            own = own_after.user + own_after.system - own_before.user - own_before.system
            share = own / max(0.001, own_after.elapsed - own_before.elapsed)
            wanted = choose(self._current, loads(before, after), share, self._allowed)
            if wanted != self._current:
                self._move(wanted)
            before, own_before = after, own_after

    def _move(self, processor: int) -> None:
        try:
            for thread in os.listdir("/proc/self/task"):
                try:
                    os.sched_setaffinity(int(thread), {processor})
                except ProcessLookupError:
                    continue
        except OSError as error:
            _log.debug("cannot choose a processor", error=error)
            return
        _log.debug("running on one processor", processor=processor)
        self._current = processor


def _read_stat() -> dict[int, tuple[int, int]] | None:
    try:
        with open("/proc/stat") as file:
            return processor_times(file.read())
    except OSError:
        return None
