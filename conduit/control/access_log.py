"""The line about every call (chapter 60 section 4)."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import unquote

import grpc

from conduit.control.tls_front import Client
from conduit.observe.logging import get_log

_log = get_log("conduit_control")

_NAMES: Final = {
    code: "".join(part.capitalize() for part in code.name.split("_")) for code in grpc.StatusCode
}


def log_call(
    context: grpc.ServicerContext,
    rpc: str,
    requestor: str,
    client: Client | None,
    started: float,
) -> None:
    """Write `control rpc` for a call that has ended.

    `client` is who is behind the TLS front, None on a plaintext listener; `started` is in seconds
    of `time.monotonic`.
    """
    _log.info(
        "control rpc",
        rpc=rpc,
        peer=client.peer if client is not None else _peer(context),
        tls=client is not None,
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
    # the library tells a call that was given up from one that took too long by its deadline only
    if context.time_remaining() == 0:
        return grpc.StatusCode.DEADLINE_EXCEEDED
    return grpc.StatusCode.CANCELLED


def _peer(context: grpc.ServicerContext) -> str:
    kind, _, address = unquote(str(context.peer())).partition(":")
    return address if kind in ("ipv4", "ipv6") and address else "unknown"
