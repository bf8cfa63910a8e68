"""The elastic worker pool of the `sync` runtime: workers block on upstreams (design 3.3).

The pool grows while queries wait, no worker is idle, and the workers get little done because they
are blocked; it shrinks after idle time. It has at most `workers_max` threads.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from conduit.lookup.await_fill import AwaitFill
from conduit.observe.counters import CounterRegistry, Recorder
from conduit.observe.logging import get_log
from conduit.pipeline import Effect, Environment, run
from conduit.runtime.bulkhead import Bulkhead
from conduit.runtime.completion import FailureReport, ThreadRecorder, finish
from conduit.runtime.slots import SlotPool
from conduit.transaction import Transaction
from conduit.upstream.blocking import BlockingExchanger
from conduit.upstream.exchange import Exchange

_log = get_log("conduit_core")

INITIAL_WORKERS: Final = 8
_IDLE_SECONDS: Final = 20.0
# after a calm time one surplus worker ends each such interval
_SHRINK_SECONDS: Final = 0.1
_GROWTH_TICK_SECONDS: Final = 0.003


class Parked(NamedTuple):
    """A transaction whose exchange waits for a worker, or for room in the bulkhead."""

    transaction: Transaction
    phases: Generator[Effect, None, None]
    effect: Exchange


class Awakened(NamedTuple):
    """A follower whose flight has ended: it goes on."""

    transaction: Transaction
    phases: Generator[Effect, None, None]


class Worker(threading.Thread):
    """Drives transactions to their end, one after the other."""

    def __init__(self, pool: WorkerPool, exchanger: BlockingExchanger, number: int) -> None:
        super().__init__(name=f"conduit-worker-{number}", daemon=True)
        self._pool = pool
        self._exchanger = exchanger
        self.completed = 0

    def run(self) -> None:
        pool = self._pool
        recorder = pool.counters.acquire()
        environment = pool.environment
        get = pool.queue.get
        idle = pool.idle
        try:
            while True:
                idle.add(self)
                try:
                    txn = get(True, _IDLE_SECONDS)
                except queue.Empty:
                    if pool.may_end(self):
                        return
                    continue
                finally:
                    idle.discard(self)
                if txn is None:
                    return
                if isinstance(txn, Parked):
                    if pool.bulkhead.enter(txn.effect.pool.name, txn):
                        self._go_on(txn, recorder)
                else:
                    if isinstance(txn, Awakened):
                        txn, phases = txn
                    else:
                        phases = run(txn, environment)
                    if txn.snapshot.metrics_enabled:
                        txn.recorder = recorder
                    self._drive(txn, phases, None)
                while (parked := pool.bulkhead.next_parked()) is not None:
                    self._go_on(parked, recorder)
                # load is spread over all workers, so none of them ever seems idle for long
                if len(idle) >= INITIAL_WORKERS and pool.is_surplus(self):
                    return
        finally:
            pool.ended(self)
            self._exchanger.close()
            pool.counters.release(recorder)

    def _go_on(self, parked: Parked, recorder: Recorder) -> None:
        """Perform an exchange that the bulkhead has admitted, and run its transaction on."""
        txn, phases, effect = parked
        txn.recorder = recorder if txn.snapshot.metrics_enabled else None
        effect.timeout = max(0.0, effect.deadline - self._pool.environment.clock())
        self._drive(txn, phases, effect)

    def _drive(
        self, txn: Transaction, phases: Generator[Effect, None, None], exchange: Exchange | None
    ) -> None:
        """Run `txn` to its end, or park it; `exchange` is one that the bulkhead has admitted."""
        bulkhead = self._pool.bulkhead
        try:
            while True:
                if exchange is None:
                    effect = next(phases, None)
                    if effect is None:
                        break
                    if isinstance(effect, AwaitFill):
                        self._pool.park_follower(txn, phases, effect)
                        return
                    exchange = effect
                    if not bulkhead.enter(exchange.pool.name, Parked(txn, phases, exchange)):
                        return
                try:
                    txn.effect_result = self._exchanger.perform(exchange)
                finally:
                    bulkhead.leave(exchange.pool.name)
                exchange = None
        except Exception:
            self._pool.failures.failed(txn)
        self._finish(txn)

    def _finish(self, txn: Transaction) -> None:
        self.completed += 1
        finish(txn, self._pool.slots)


class WorkerPool:
    """Workers, the queue that feeds them, and the supervisor that sizes the pool."""

    def __init__(
        self,
        environment: Environment,
        slots: SlotPool,
        counters: CounterRegistry,
        new_exchanger: Callable[[], BlockingExchanger],
        workers_max: int,
    ) -> None:
        self.environment = environment
        self.slots = slots
        self.counters = counters
        # the slot pool bounds it: a transaction holds its slot while it is queued
        self.queue: queue.SimpleQueue[Transaction | Awakened | Parked | None] = queue.SimpleQueue()
        self.bulkhead: Bulkhead[Parked] = Bulkhead(workers_max)
        self.workers_max = workers_max
        self.idle: set[Worker] = set()
        self._new_exchanger = new_exchanger
        self._lock = threading.Lock()
        self._workers: set[Worker] = set()
        self._retired_completed = 0
        self._next_number = 1
        self._shrink_after = 0.0
        self._backlog = threading.Event()
        self._stop_requested = False
        self._supervisor = threading.Thread(
            target=self._supervise, name="conduit-supervisor", daemon=True
        )
        self.failures = FailureReport()
        self._own = ThreadRecorder()

    def start(self) -> None:
        """Start the first workers and the supervisor."""
        for _ in range(min(INITIAL_WORKERS, self.workers_max)):
            self._add_worker()
        self._supervisor.start()

    def submit(self, transaction: Transaction) -> None:
        """Take one admitted transaction; never blocks.

        Where caches answer and no rule looks on, the thread that received the query also answers
        it: a hit costs less than its hand-over.
        """
        if transaction.snapshot.answers_inline:
            self._begin(transaction)
        else:
            self._enqueue(transaction)

    def _enqueue(self, item: Transaction | Awakened | Parked) -> None:
        self.queue.put(item)
        # more than the idle workers will take: a burst may come before any of them wakes
        if self.queue.qsize() > len(self.idle) and not self._backlog.is_set():
            self._backlog.set()

    def _begin(self, txn: Transaction) -> None:
        """Run a transaction up to where it has to wait; a worker goes on from there."""
        if txn.snapshot.metrics_enabled:
            recorder = self._own.recorder
            if recorder is None:
                recorder = self._own.recorder = self.counters.acquire()
            txn.recorder = recorder
        phases = run(txn, self.environment)
        try:
            effect = next(phases, None)
        except Exception:
            self.failures.failed(txn)
            effect = None
        if effect is None:
            finish(txn, self.slots)
        elif isinstance(effect, AwaitFill):
            self.park_follower(txn, phases, effect)
        else:
            self._enqueue(Parked(txn, phases, effect))

    def park_follower(
        self, txn: Transaction, phases: Generator[Effect, None, None], effect: AwaitFill
    ) -> None:
        """Let a follower wait without a thread; the end of its flight queues it again."""
        awakened = Awakened(txn, phases)

        effect.flight.when_done(lambda: self._enqueue(awakened))

    def stop(self, timeout: float = 1.0) -> None:
        """End the workers; those that block on an upstream are left to end with the process."""
        self._stop_requested = True
        self._backlog.set()
        with self._lock:
            workers = list(self._workers)
        for _ in workers:
            self.queue.put(None)
        deadline = time.monotonic() + timeout
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))

    @property
    def size(self) -> int:
        """Number of live workers."""
        return len(self._workers)

    def is_surplus(self, worker: Worker) -> bool:
        """True, a few times a second, when many workers idle and the last growth is long ago."""
        now = time.monotonic()
        with self._lock:
            if len(self._workers) <= INITIAL_WORKERS or now < self._shrink_after:
                return False
            self._shrink_after = now + _SHRINK_SECONDS
            self._remove(worker)
            return True

    def may_end(self, worker: Worker) -> bool:
        """True when an idle worker is not needed any more."""
        with self._lock:
            if len(self._workers) <= INITIAL_WORKERS or self.queue.qsize():
                return False
            self._remove(worker)
            return True

    def ended(self, worker: Worker) -> None:
        """Note that a worker's thread ends."""
        with self._lock:
            self._remove(worker)

    def _remove(self, worker: Worker) -> None:
        if worker in self._workers:
            self._workers.discard(worker)
            self._retired_completed += worker.completed

    def _add_worker(self) -> None:
        with self._lock:
            self._shrink_after = time.monotonic() + _IDLE_SECONDS
            worker = Worker(self, self._new_exchanger(), self._next_number)
            self._next_number += 1
            self._workers.add(worker)
        try:
            worker.start()
        except RuntimeError as error:
            self.ended(worker)
            _log.warn("cannot start a worker thread", workers=self.size, error=error)

    def _completed(self) -> int:
        with self._lock:
            return self._retired_completed + sum(w.completed for w in self._workers)

    def _supervise(self) -> None:
        while True:
            self._backlog.wait()
            if self._stop_requested:
                return
            completed = self._completed()
            while self.queue.qsize() and not self._stop_requested:
                time.sleep(_GROWTH_TICK_SECONDS)
                before, completed = completed, self._completed()
                if self.idle:
                    continue
                size = self.size
                # workers that finish a query each tick are busy, not blocked: more would not help
                if completed - before < size:
                    room = self.workers_max - size
                    for _ in range(min(size, self.queue.qsize(), room)):
                        self._add_worker()
                    if room <= 0:
                        time.sleep(0.05)
            self._backlog.clear()
            if self.queue.qsize():
                self._backlog.set()
