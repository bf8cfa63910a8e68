"""Gives up calls whose request does not come, so that they do not hold the server's threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc

# seconds between two looks while somebody waits
_LOOK: Final = 0.05


class RequestWatch(threading.Thread):
    """Cancels calls that have waited too long for what their client has to send.

    A thread waits for each of them. While more than half of `threads` wait, patience is short:
    other calls may stand behind them.
    """

    def __init__(self, threads: int, patience: float = 10.0, short_patience: float = 0.25) -> None:
        """`threads` serve the calls; the patience is in seconds."""
        super().__init__(name="conduit-grpc-watch", daemon=True)
        self._threads = threads
        self._patience = patience
        self._short_patience = short_patience
        self._waiting: dict[grpc.ServicerContext, float] = {}
        self._changed = threading.Condition()
        self._stopped = False

    @contextmanager
    def waiting(self, context: grpc.ServicerContext) -> Iterator[None]:
        """The call of `context` waits inside; it is cancelled when that takes too long."""
        with self._changed:
            if not self._waiting:
                self._changed.notify()
            self._waiting[context] = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                del self._waiting[context]

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                self._changed.wait(_LOOK if self._waiting else None)
                many = len(self._waiting) * 2 > self._threads
                patience = self._short_patience if many else self._patience
                limit = time.monotonic() - patience
                late = [context for context, since in self._waiting.items() if since < limit]
            for context in late:
                context.cancel()
