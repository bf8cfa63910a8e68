"""A forward in flight under `split_io`: the parked transaction and what it waits for."""

from __future__ import annotations

from collections.abc import Generator

from conduit.pipeline import Effect
from conduit.transaction import Transaction
from conduit.upstream.exchange import Exchange, ExchangeResult


class PendingForward:
    """One parked transaction; exactly one caller wins `claim` and may end it."""

    __slots__ = (
        "_claim",
        "exchange",
        "message",
        "phases",
        "query_id",
        "source",
        "transaction",
        "truncated_reply",
    )

    def __init__(
        self,
        transaction: Transaction,
        phases: Generator[Effect, None, None],
        exchange: Exchange,
        query_id: int,
        source: str | None,
    ) -> None:
        self.transaction = transaction
        self.phases = phases
        self.exchange = exchange
        self.query_id = query_id
        self.source = source
        #: The client's message under our id.
        self.message = query_id.to_bytes(2, "big") + exchange.wire[2:]
        #: A truncated answer, usable when the attempt over TCP fails.
        self.truncated_reply: bytes | None = None
        self._claim: list[None] = [None]

    def claim(self) -> bool:
        """True for the one caller that ends this forward."""
        # list.pop is one atomic call: no lock is needed
        try:
            self._claim.pop()
        except IndexError:
            return False
        return True

    @property
    def ended(self) -> bool:
        """True when somebody has claimed the forward."""
        return not self._claim

    def result(self, reply: bytes) -> ExchangeResult:
        """Return the result for a reply, with the client's id put back."""
        return ExchangeResult(self.exchange.wire[:2] + reply[2:])
