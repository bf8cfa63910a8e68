"""Who may call what, and the line about every call (chapter 60 sections 3 and 4)."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import grpc

from conduit.control.tls_front import Client
from conduit.observe.logging import get_log

_log = get_log("conduit_control")

DENIED: Final = "missing or invalid API key (use Authorization: Bearer <key> or x-api-key)"
_SERVICES: Final = ("/conduit.v1.", "/grpc.health.v1.Health/")
_NAMES: Final = {
    code: "".join(part.capitalize() for part in code.name.split("_")) for code in grpc.StatusCode
}

Behaviour = Callable[[Any, grpc.ServicerContext], Any]


class AccessInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """Asks for an API key where keys are configured, and logs each call once it has ended."""

    def __init__(
        self, keys: Callable[[], Sequence[str]], clients: Mapping[str, Client] | None
    ) -> None:
        """`keys` gives the keys of the active configuration.

        `clients` names the connections of the TLS front; None when the server is reached directly.
        """
        self._keys = keys
        self._clients = clients

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Wrap the handler of one call; reflection stays outside of both."""
        method = handler_call_details.method
        handler = continuation(handler_call_details)
        if not method.startswith(_SERVICES):
            return handler
        metadata = handler_call_details.invocation_metadata
        if handler is None:
            # an unknown method of a known service is authenticated first
            return grpc.unary_unary_rpc_method_handler(self._wrap(_unimplemented, method, metadata))
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                self._wrap_stream(handler.unary_stream, method, metadata),
                handler.request_deserializer,
                handler.response_serializer,
            )
        return grpc.unary_unary_rpc_method_handler(
            self._wrap(handler.unary_unary, method, metadata),
            handler.request_deserializer,
            handler.response_serializer,
        )

    def _wrap(self, behaviour: Behaviour, method: str, metadata: Any) -> Behaviour:
        def call(request: Any, context: grpc.ServicerContext) -> Any:
            started = time.monotonic()
            requestor = "unauthenticated"
            try:
                requestor = self._admit(metadata, context)
                return behaviour(request, context)
            except Exception:
                # abort() raises; everything else is a bug, which the library reports as Unknown
                if context.code() is None:
                    _log.exception("control rpc failed", rpc=method)
                    context.set_code(grpc.StatusCode.UNKNOWN)
                raise
            finally:
                self._log_call(method, metadata, context, requestor, started)

        return call

    def _wrap_stream(self, behaviour: Behaviour, method: str, metadata: Any) -> Behaviour:
        def call(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            started = time.monotonic()
            requestor = "unauthenticated"
            try:
                requestor = self._admit(metadata, context)
                yield from behaviour(request, context)
            finally:
                self._log_call(method, metadata, context, requestor, started)

        return call

    def _admit(self, metadata: Any, context: grpc.ServicerContext) -> str:
        """Return the `requestor`; aborts a call that has no right."""
        if self._clients is not None and self._client(context) is None:
            # somebody found the private socket: nothing but the front may use it
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "connect to the control listener")
        keys = self._keys()
        credentials = _credentials(metadata)
        if not keys:
            return "anonymous"
        if any(_matches(credential, keys) for credential in credentials):
            return "api_key"
        context.abort(grpc.StatusCode.UNAUTHENTICATED, DENIED)
        raise AssertionError("abort raises")

    def _client(self, context: grpc.ServicerContext) -> Client | None:
        name = str(context.peer()).partition(":")[2]
        return None if self._clients is None else self._clients.get(name)

    def _log_call(
        self,
        method: str,
        metadata: Any,
        context: grpc.ServicerContext,
        requestor: str,
        started: float,
    ) -> None:
        code = context.code()
        if code is None:
            code = grpc.StatusCode.OK if context.is_active() else grpc.StatusCode.CANCELLED
        elif isinstance(code, int):
            code = next(c for c in grpc.StatusCode if c.value[0] == code)
        client = self._client(context)
        if client is not None and client.has_certificate:
            requestor = "mtls"
        elif code is grpc.StatusCode.UNAUTHENTICATED and _credentials(metadata):
            requestor = "api_key_rejected"
        _log.info(
            "control rpc",
            rpc=method,
            peer=client.peer if client is not None else _peer(context),
            tls=self._clients is not None,
            requestor=requestor,
            grpc_code=_NAMES[code],
            latency_ms=int((time.monotonic() - started) * 1000),
        )


def _credentials(metadata: Any) -> list[str]:
    """Return what a caller presents, in the order of looking; odd values count as absent."""
    found: list[str] = []
    for name, value in metadata or ():
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            continue
        if name == "authorization" and value.startswith(("Bearer ", "bearer ")):
            found.append(value[7:])
        elif name == "x-api-key":
            found.append(value)
    return found


def _matches(credential: str, keys: Sequence[str]) -> bool:
    given = credential.encode("utf-8")
    # every key is compared, so that the time says nothing about which one is near
    found = [hmac.compare_digest(given, key.encode("utf-8")) for key in keys]
    return True in found


def _peer(context: grpc.ServicerContext) -> str:
    kind, _, address = unquote(str(context.peer())).partition(":")
    return address if kind in ("ipv4", "ipv6") and address else "unknown"


def _unimplemented(request: Any, context: grpc.ServicerContext) -> Any:
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
