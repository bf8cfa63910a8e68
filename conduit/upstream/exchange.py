"""The exchange effect: what the pipeline asks of the outside world, and what comes back.

Both runtimes perform it, by blocking a worker or by parking the transaction; the pipeline sees
only these two classes (design: one pipeline, no second copy of any rule).
"""

from __future__ import annotations

from conduit.upstream.backend import Backend
from conduit.upstream.pool import Pool

UDP = "udp"
TCP = "tcp"
UDP_WITH_TCP_FALLBACK = "udp_then_tcp"

# Error reasons, as the label of conduit_forward_errors_total (chapter 20 section 12.5).
TIMEOUT = "timeout"
SEND_ERROR = "send_error"
TCP_ERROR = "tcp_error"
TABLE_FULL = "table_full"
POOL_INFLIGHT_EXCEEDED = "pool_inflight_exceeded"
NO_IO_EGRESS = "no_io_egress"

#: Failures before a backend was really used: counted under backend `unknown`.
WITHOUT_BACKEND = frozenset({TABLE_FULL, POOL_INFLIGHT_EXCEEDED})

#: Failures that count against the backend's passive health (chapter 60 section 12.1).
SPEAKS_OF_BACKEND = frozenset({TIMEOUT, SEND_ERROR, TCP_ERROR})


class Exchange:
    """Send `wire` to `backend` and wait for a matching reply until `deadline`.

    `wire` is the client's message with the client's id; the performer puts an id of its own in
    and the client's id back. `transport` is `UDP`, `TCP` or `UDP_WITH_TCP_FALLBACK`.
    `source_override` is a local address the policy asked for, or None; whether it is allowed and
    what round robin gives otherwise is the performer's to say. `deadline` is a time of the
    monotonic clock in seconds; `timeout` is the whole bound in seconds. `outstanding_limit` is the
    cap on forwards to one backend address.
    """

    __slots__ = (
        "backend",
        "deadline",
        "outstanding_limit",
        "pool",
        "question",
        "source_override",
        "timeout",
        "transport",
        "wire",
    )

    def __init__(
        self,
        pool: Pool,
        backend: Backend,
        wire: bytes,
        question: bytes,
        transport: str,
        source_override: str | None,
        deadline: float,
        timeout: float,
        outstanding_limit: int,
    ) -> None:
        self.pool = pool
        self.backend = backend
        self.wire = wire
        self.question = question
        self.transport = transport
        self.source_override = source_override
        self.deadline = deadline
        self.timeout = timeout
        self.outstanding_limit = outstanding_limit


class ExchangeResult:
    """The end of one exchange: a reply carrying the client's id, or the reason of a failure."""

    __slots__ = ("error", "reply")

    def __init__(self, reply: bytes | None, error: str | None = None) -> None:
        self.reply = reply
        self.error = error

    def __repr__(self) -> str:
        if self.error is not None:
            return f"ExchangeResult(error={self.error!r})"
        return f"ExchangeResult(reply of {len(self.reply or b'')} octets)"


RESULT_TIMEOUT = ExchangeResult(None, TIMEOUT)
RESULT_SEND_ERROR = ExchangeResult(None, SEND_ERROR)
RESULT_TCP_ERROR = ExchangeResult(None, TCP_ERROR)
RESULT_POOL_FULL = ExchangeResult(None, POOL_INFLIGHT_EXCEEDED)
RESULT_NO_EGRESS = ExchangeResult(None, NO_IO_EGRESS)
RESULT_TABLE_FULL = ExchangeResult(None, TABLE_FULL)
