"""The end of a transaction on a worker: reply or silence, the slot, and what a bug turns into."""

from __future__ import annotations

import threading
import time
from typing import Final

from conduit.observe.counters import Recorder
from conduit.observe.logging import get_log
from conduit.runtime.slots import SlotPool
from conduit.transaction import SERVFAIL, Transaction
from conduit.wire import ExtendedError, synthesize_reply

_log = get_log("conduit_core")

_TRACEBACK_INTERVAL_SECONDS: Final = 10.0


class ThreadRecorder(threading.local):
    """The recorder of a thread that is not a worker but runs transactions."""

    recorder: Recorder | None = None


def finish(txn: Transaction, slots: SlotPool) -> None:
    """Deliver the reply of a transaction that has ended, or nothing, and free its slot."""
    reply = txn.reply
    try:
        if reply is None:
            txn.listener.no_reply(txn.client_context)
        else:
            txn.listener.reply(txn.client_context, reply)
    finally:
        slots.release()


class FailureReport:
    """Turns a bug in policy or pipeline code into SERVFAIL for one query and a rare log line."""

    def __init__(self) -> None:
        self._last_traceback = 0.0
        self._failures = 0

    def failed(self, txn: Transaction) -> None:
        """Call it while the exception is being handled."""
        self._failures += 1
        txn.reply = synthesize_reply(txn.query, SERVFAIL, ExtendedError.OTHER)
        now = time.monotonic()
        if now - self._last_traceback >= _TRACEBACK_INTERVAL_SECONDS:
            self._last_traceback = now
            _log.exception(
                "query processing failed",
                txn_id=txn.id,
                qname=txn.query.qname_text,
                failures=self._failures,
            )
