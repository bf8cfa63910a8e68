"""When each backend is probed: due times, one open probe each, deadlines (chapter 60, 11).

Pure bookkeeping on times that the caller gives; the prober does the sending. The next event of each
backend stands in a heap, so that many backends cost little more than those that are due.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterable

from conduit.upstream.health.state import BackendHealth


class Slot:
    """The probing state of one backend; times are monotonic seconds but for `sent_wall`."""

    __slots__ = ("deadline", "due", "entry", "gone", "probe_id", "sent_wall")

    def __init__(self, entry: BackendHealth, due: float) -> None:
        self.entry = entry
        self.due = due
        #: Id of the open probe, or -1.
        self.probe_id = -1
        self.deadline = 0.0
        #: Wall-clock time of the last send, to compare with the kernel's receive time.
        self.sent_wall = 0.0
        #: True when the backend has left the configuration.
        self.gone = False

    @property
    def open(self) -> bool:
        """True while a probe waits for its reply."""
        return self.probe_id >= 0

    @property
    def event(self) -> float:
        """When something is to be done: the deadline of an open probe, else the due time."""
        return self.deadline if self.probe_id >= 0 else self.due


class ProbeSchedule:
    """The slots of all backends."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.SystemRandom()
        self._slots: dict[int, Slot] = {}
        self._heap: list[tuple[float, int, Slot]] = []
        self._order = itertools.count()

    @property
    def slots(self) -> list[Slot]:
        """All slots."""
        return list(self._slots.values())

    def follow(self, entries: Iterable[BackendHealth], now: float) -> list[Slot]:
        """Take over the current backends; returns the slots of those that are gone.

        A kept backend keeps its due time and its open probe, unless its interval became shorter
        than the wait that is left. A new one is due at once.
        """
        known, self._slots = self._slots, {}
        for entry in entries:
            slot = known.pop(id(entry), None)
            if slot is None:
                slot = Slot(entry, now)
            slot.due = min(slot.due, now + 1.2 * entry.settings.interval)
            self._slots[id(entry)] = slot
            self._push(slot)
        for slot in known.values():
            slot.gone = True
        return list(known.values())

    def take_due(self, now: float) -> list[Slot]:
        """Return the slots whose event has come: closed ones want a probe, open ones are overdue.

        The caller acts on each of them with `sent`, `postpone` or `close`.
        """
        # a dictionary for its order: a slot may stand in the heap twice with one time
        found: dict[Slot, None] = {}
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, slot = heapq.heappop(heap)
            if not slot.gone and slot.event == at:
                found[slot] = None
        return list(found)

    def sent(self, slot: Slot, probe_id: int, now: float) -> None:
        """Note that a probe went out: the next one is due an interval and a jitter from now."""
        slot.due = self._after_interval(slot, now)
        slot.probe_id = probe_id
        slot.deadline = now + slot.entry.settings.timeout
        self._push(slot)

    def postpone(self, slot: Slot, now: float) -> None:
        """Make the next probe due an interval and a jitter from now."""
        slot.due = self._after_interval(slot, now)
        self._push(slot)

    def close(self, slot: Slot) -> None:
        """Note that the open probe has ended."""
        slot.probe_id = -1
        self._push(slot)

    def new_id(self) -> int:
        """Return a fresh random probe id."""
        return self._rng.randrange(65536)

    def next_event(self, now: float) -> float | None:
        """Return the seconds until something is due, or None without backends."""
        heap = self._heap
        while heap and (heap[0][2].gone or heap[0][2].event != heap[0][0]):
            heapq.heappop(heap)
        return max(0.0, heap[0][0] - now) if heap else None

    def _after_interval(self, slot: Slot, now: float) -> float:
        interval_ms = int(slot.entry.settings.interval * 1000)
        jitter_ms = self._rng.randint(0, interval_ms * 20 // 100)
        return now + (interval_ms + jitter_ms) / 1000

    def _push(self, slot: Slot) -> None:
        if not slot.gone:
            heapq.heappush(self._heap, (slot.event, next(self._order), slot))
