"""The `split_io` runtime: policy workers run the pipeline, I/O workers wait for upstreams.

A transaction that waits is parked: no thread belongs to it. Where a snapshot has no rules for what
comes next, the thread that is there already goes on with the transaction, because a hand-over to a
policy worker would cost more than the work.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from typing import NamedTuple

from conduit.lookup.await_fill import AwaitFill
from conduit.observe.counters import CounterRegistry, Recorder
from conduit.pipeline import Effect, Environment, run
from conduit.runtime.completion import FailureReport, ThreadRecorder, finish
from conduit.runtime.inflight import InflightLimits
from conduit.runtime.io_worker import IoWorker
from conduit.runtime.pending import PendingForward
from conduit.runtime.slots import SlotPool
from conduit.transaction import Transaction
from conduit.upstream.exchange import (
    RESULT_NO_EGRESS,
    RESULT_POOL_FULL,
    RESULT_TABLE_FULL,
    Exchange,
    ExchangeResult,
)
from conduit.upstream.outstanding import OutstandingTable
from conduit.upstream.source import SourceSelector


class Resumed(NamedTuple):
    """A parked transaction whose forward has ended."""

    pending: PendingForward
    result: ExchangeResult


class Awakened(NamedTuple):
    """A follower whose flight has ended: it goes on."""

    transaction: Transaction
    phases: Generator[Effect, None, None]


class SplitPool:
    """Policy and I/O workers; the same face as the worker pool of `sync`."""

    def __init__(
        self,
        environment: Environment,
        slots: SlotPool,
        counters: CounterRegistry,
        table: OutstandingTable,
        limits: InflightLimits,
        new_sources: Callable[[], SourceSelector],
        policy_workers: int,
        io_workers: int,
    ) -> None:
        self._environment = environment
        self._slots = slots
        self._counters = counters
        self._table = table
        self._limits = limits
        self._failures = FailureReport()
        # the slot pool bounds it: a transaction holds its slot while it is queued or parked
        self._queue: queue.SimpleQueue[Transaction | Resumed | Awakened | None] = (
            queue.SimpleQueue()
        )
        self._io = [IoWorker(n + 1, new_sources(), self._completed) for n in range(io_workers)]
        self._policy = [
            threading.Thread(target=self._work, name=f"conduit-policy-{n + 1}", daemon=True)
            for n in range(policy_workers)
        ]
        self._own = ThreadRecorder()

    @property
    def size(self) -> int:
        """Number of threads."""
        return len(self._policy) + len(self._io)

    def start(self) -> None:
        """Start all workers."""
        for thread in (*self._io, *self._policy):
            thread.start()

    def submit(self, transaction: Transaction) -> None:
        """Take one admitted transaction from an ingress worker; never waits for an upstream."""
        if transaction.snapshot.request_rules is None:
            self._begin(transaction)
        else:
            self._queue.put(transaction)

    def stop(self, timeout: float = 1.0) -> None:
        """End the workers; parked transactions get no reply."""
        for _ in self._policy:
            self._queue.put(None)
        for worker in self._io:
            worker.stop()
        deadline = time.monotonic() + timeout
        for thread in (*self._policy, *self._io):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _recorder(self, txn: Transaction) -> Recorder | None:
        if not txn.snapshot.metrics_enabled:
            return None
        recorder = self._own.recorder
        if recorder is None:
            recorder = self._own.recorder = self._counters.acquire()
        return recorder

    def _work(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, Resumed):
                self._resume(item.pending, item.result)
            elif isinstance(item, Awakened):
                item.transaction.recorder = self._recorder(item.transaction)
                self._drive(item.transaction, item.phases)
            else:
                self._begin(item)

    def _begin(self, txn: Transaction) -> None:
        txn.recorder = self._recorder(txn)
        self._drive(txn, run(txn, self._environment))

    def _resume(self, pending: PendingForward, result: ExchangeResult) -> None:
        txn = pending.transaction
        txn.recorder = self._recorder(txn)
        txn.effect_result = result
        self._drive(txn, pending.phases)

    def _drive(self, txn: Transaction, phases: Generator[Effect, None, None]) -> None:
        """Run the transaction until it ends or is parked."""
        try:
            effect = next(phases, None)
            while effect is not None:
                if isinstance(effect, AwaitFill):
                    self._park_follower(txn, phases, effect)
                    return
                result = self._start(txn, phases, effect)
                if result is None:
                    # parked: from here on it belongs to the thread that resumes it
                    return
                txn.effect_result = result
                effect = next(phases, None)
        except Exception:
            self._failures.failed(txn)
        finish(txn, self._slots)

    def _park_follower(
        self, txn: Transaction, phases: Generator[Effect, None, None], effect: AwaitFill
    ) -> None:
        """Let a follower wait without a thread; the end of its flight queues it again."""
        awakened = Awakened(txn, phases)
        effect.flight.when_done(lambda: self._queue.put(awakened))

    def _start(
        self, txn: Transaction, phases: Generator[Effect, None, None], exchange: Exchange
    ) -> ExchangeResult | None:
        if not self._io:
            return RESULT_NO_EGRESS
        backend, pool = exchange.backend.key, exchange.pool.name
        query_id = self._table.acquire(backend, txn.query.id, exchange.outstanding_limit)
        if query_id < 0:
            return RESULT_TABLE_FULL
        if not self._limits.reserve(pool):
            self._table.release(backend, query_id)
            return RESULT_POOL_FULL
        worker = self._io[txn.id % len(self._io)]
        pending = PendingForward(txn, phases, exchange, query_id, worker.choose_source(exchange))
        result = worker.start_forward(pending)
        if result is not None:
            self._release(pending)
        return result

    def _release(self, pending: PendingForward) -> None:
        self._table.release(pending.exchange.backend.key, pending.query_id)
        self._limits.release(pending.exchange.pool.name)

    def _completed(self, worker: IoWorker, pending: PendingForward, result: ExchangeResult) -> None:
        """A forward has ended, on the I/O worker's thread."""
        self._release(pending)
        snapshot = pending.transaction.snapshot
        if snapshot.response_rules is None and snapshot.no_answer_rules is None:
            self._resume(pending, result)
        else:
            # rules and scripts must not hold up the matching of replies
            self._queue.put(Resumed(pending, result))
