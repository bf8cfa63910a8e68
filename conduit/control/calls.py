"""What happens around every call: the API key, the request, the line in the access log.

The key is asked for before anything of the request is awaited or parsed, so that a caller without
one costs nothing (chapter 60 sections 2 to 4).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from conduit.control.access_log import ended_code, log_call, peer_of
from conduit.control.auth import DENIED, credentials, is_known, requestor
from conduit.control.request_watch import RequestWatch
from conduit.control.services.outcome import refuse
from conduit.control.tls_front import Client
from conduit.observe.logging import get_log

_log = get_log("conduit_control")

#: Octets of the largest request.
MAX_REQUEST: Final = 4 * 1024 * 1024
_SERVICES: Final = ("/conduit.v1.", "/grpc.health.v1.Health/")


class CallInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]
    """Asks for an API key where keys are configured, and logs each call once it has ended."""

    def __init__(
        self,
        keys: Callable[[], Sequence[str]],
        clients: Mapping[str, Client] | None,
        watch: RequestWatch,
        open_calls: OpenCalls,
    ) -> None:
        """`keys` gives the keys of the active configuration.

        `clients` names the connections of the TLS front; None when the server is reached directly.
        `open_calls` serves what stands outside of authentication.
        """
        self._keys = keys
        self._clients = clients
        self._watch = watch
        self._open_calls = open_calls

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Wrap the handler of one call; reflection stays outside of key and log."""
        method = handler_call_details.method
        handler = continuation(handler_call_details)
        if not method.startswith(_SERVICES):
            return handler if handler is None else self._open_calls.handler(handler)
        if handler is None or handler.unary_unary is None:
            # an unknown method of a known service is authenticated first
            behaviour, parse, serialize = _unimplemented, None, None
        else:
            behaviour, parse = handler.unary_unary, handler.request_deserializer
            serialize = handler.response_serializer
        metadata = handler_call_details.invocation_metadata
        call = self._wrap(method, credentials(metadata), behaviour, parse)
        # a stream of one: the call begins before its request is there, on the wire it is the same
        return grpc.stream_unary_rpc_method_handler(call, None, serialize)

    def _wrap(
        self,
        method: str,
        presented: Sequence[str],
        behaviour: Callable[[Any, grpc.ServicerContext], Any],
        parse: Callable[[bytes], Any] | None,
    ) -> Callable[[Iterator[bytes], grpc.ServicerContext], Any]:
        def call(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            started = time.monotonic()
            keys = self._keys()
            client = self._client(context)
            peer = peer_of(context) if client is None else client.peer
            who = requestor(client is not None and client.has_certificate, presented, keys)
            try:
                if self._clients is not None and client is None:
                    # somebody found the private socket: nothing but the front may use it
                    message = "connect to the control listener"
                    refuse(context, grpc.StatusCode.PERMISSION_DENIED, message)
                if keys and not is_known(presented, keys):
                    refuse(context, grpc.StatusCode.UNAUTHENTICATED, DENIED)
                request = self._request(method, requests, context, parse)
                return behaviour(request, context)
            except grpc.RpcError:
                # the client went away, or was given up, before its request was there
                raise
            except Exception:
                # abort() raises; everything else is a bug, which the library reports as Unknown
                if context.code() is None:
                    _log.exception("control rpc failed", rpc=method)
                    context.set_code(grpc.StatusCode.UNKNOWN)
                raise
            finally:
                log_call(context, method, who, peer, self._clients is not None, started)

        return call

    def _request(
        self,
        method: str,
        requests: Iterator[bytes],
        context: grpc.ServicerContext,
        parse: Callable[[bytes], Any] | None,
    ) -> Any:
        with self._watch.waiting(context):
            octets = next(requests, None)
        if octets is None:
            _refuse_if_ended(context)
            message = f'"{method}" requires exactly one request message.'
            refuse(context, grpc.StatusCode.UNIMPLEMENTED, message)
        if len(octets) > MAX_REQUEST:
            message = f"Received message larger than max ({len(octets)} vs. {MAX_REQUEST})"
            refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, message)
        try:
            return octets if parse is None else parse(octets)
        except DecodeError:
            message = "Exception deserializing request!"
            refuse(context, grpc.StatusCode.INTERNAL, message)

    def _client(self, context: grpc.ServicerContext) -> Client | None:
        name = str(context.peer()).partition(":")[2]
        return None if self._clients is None else self._clients.get(name)


class OpenCalls:
    """Runs the streams of reflection on threads of their own: nobody needs a key to hold them."""

    def __init__(self, pool: ThreadPoolExecutor, watch: RequestWatch) -> None:
        self._pool = pool
        self._watch = watch

    def handler(self, handler: grpc.RpcMethodHandler) -> grpc.RpcMethodHandler:
        """Return `handler` on the threads of this object."""
        if handler.stream_stream is None:
            return handler
        return grpc.stream_stream_rpc_method_handler(
            _OpenStream(handler.stream_stream, self._pool, self._watch),
            handler.request_deserializer,
            handler.response_serializer,
        )


class _OpenStream:
    """A streaming behaviour; the library looks for the pool in this attribute."""

    def __init__(self, behaviour: Any, pool: ThreadPoolExecutor, watch: RequestWatch) -> None:
        self._behaviour = behaviour
        self._watch = watch
        self.experimental_thread_pool = pool

    def __call__(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with self._watch.waiting(context):
            yield from self._behaviour(requests, context)


def _refuse_if_ended(context: grpc.ServicerContext) -> None:
    """End a call that its client has given up; the library may learn that a moment later."""
    ended = threading.Event()
    if context.add_callback(ended.set) and not ended.wait(0.05):
        return
    refuse(context, ended_code(context), "the client has given up")


def _unimplemented(request: Any, context: grpc.ServicerContext) -> Any:
    context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
