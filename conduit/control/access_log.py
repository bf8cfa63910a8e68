"""The line about every call (chapter 60 section 4)."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import unquote

import grpc

from conduit.observe.logging import get_log

_log = get_log("conduit_control")

_NAMES: Final = {
    code: "".join(part.capitalize() for part in code.name.split("_")) for code in grpc.StatusCode
}

# seconds
_DEADLINE_TOLERANCE: Final = 0.05


def log_call(
    context: grpc.ServicerContext,
    rpc: str,
    requestor: str,
    peer: str,
    tls: bool,
    started: float,
) -> None:
    """Write `control rpc` for a call that has ended; `started` is of `time.monotonic`."""
    _log.info(
        "control rpc",
        rpc=rpc,
        peer=peer,
        tls=tls,
        requestor=requestor,
        grpc_code=_NAMES[_code(context)],
        latency_ms=int((time.monotonic() - started) * 1000),
    )


def _code(context: grpc.ServicerContext) -> grpc.StatusCode:
    code = context.code()
    if isinstance(code, int):
        return next(known for known in grpc.StatusCode if known.value[0] == code)
    if code is not None:
        return code
    if context.is_active():
        return grpc.StatusCode.OK
    return ended_code(context)


def ended_code(context: grpc.ServicerContext) -> grpc.StatusCode:
    """Return how a call ended that its client has given up: by its deadline, or at will."""
    # a client that waits no longer says so some milliseconds before the deadline comes here
    if context.time_remaining() < _DEADLINE_TOLERANCE:
        return grpc.StatusCode.DEADLINE_EXCEEDED
    return grpc.StatusCode.CANCELLED


def peer_of(context: grpc.ServicerContext) -> str:
    """Return `ip:port`, or `unknown`: the library forgets it when the call has ended."""
    kind, _, address = unquote(str(context.peer())).partition(":")
    return address if kind in ("ipv4", "ipv6") and address else "unknown"
